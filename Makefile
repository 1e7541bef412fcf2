# make run      build and start the bot        make check   everything CI checks (= .ci/run)
# make fmt      format the source              make cover   test coverage, in coverage.html
# make bench    speed and memory               make e2e     the web page in a real browser
# make soak     three platforms under random faults, for half an hour (SOAK=2h, SEED=7, SOAK_LOG=file)

export CGO_ENABLED ?= 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFLAGS_BUILD = -trimpath -tags timetzdata -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: build run check test fmt cover bench soak e2e image clean

build:
	go build $(GOFLAGS_BUILD) -o bin/bot ./cmd/bot

run: build
	./bin/bot run

check:
	./.ci/run

test:
	go test ./...

fmt:
	go tool -modfile=tools/go.mod gofumpt -w .

cover:
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	go tool cover -func=coverage.out | tail -n 1

bench:
	go test -run '^$$' -bench . -benchmem ./...

SOAK ?= 30m
SEED ?= 0
soak:
	go test ./internal/drill/soak -run '^TestSoak$$' -count=1 -v -timeout 0 -soak $(SOAK) -seed $(SEED) -log "$(SOAK_LOG)"

e2e:
	go test -tags e2e -count=1 -v ./gateway/...

image:
	docker build --build-arg VERSION=$(VERSION) -t understudy:$(VERSION) .

clean:
	rm -rf bin coverage.out coverage.html
