package simulate_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/app/simulate"
)

const scenarios = "../../scenarios"

// shipped are the scenarios that come with the product: lines that must stand in their traces, in
// this order, and how they end.
var shipped = map[string]struct {
	lines   []string
	summary string
}{
	"rate-limit-one-model.yaml": {[]string{
		"2 dm#1 answer anthropic/claude-opus-4-8: Opus here.",
		"60.3 dm#2 try anthropic/claude-opus-4-8 anthropic:work 429 rate_limit 0.3s",
		"60.3 health anthropic:work for claude-opus-4-8 cooling until 90.3 rate_limit step 1",
		"61.3 dm#2 try anthropic/claude-haiku-4-5 anthropic:work ok 1s",
		"61.3 dm#2 notice ↪️ Model Fallback: anthropic/claude-haiku-4-5 (selected anthropic/claude-opus-4-8; rate limit)",
		"70.3 dm#3 try anthropic/claude-opus-4-8 anthropic:work 429 rate_limit 0.3s probe",
		"122 health anthropic:work for claude-opus-4-8 step 0",
		"122 dm#4 notice ↪️ Model Fallback cleared: anthropic/claude-opus-4-8 (was anthropic/claude-haiku-4-5)",
	}, "4 turns 4 answered 0 failed, anthropic/claude-haiku-4-5=2 anthropic/claude-opus-4-8=2, 6 calls 2 failed, 2 notices, waited 0s, slowest 2s"},
	"provider-outage-one-hour.yaml": {[]string{
		"601 team#4 try openai/gpt-5.5 openai:work 500 timeout 1s",
		"601 health openai:work for gpt-5.5 cooling until 631 timeout step 1",
		"603 team#4 notice ↪️ Model Fallback: anthropic/claude-opus-4-8 (selected openai/gpt-5.5; server error)",
		"901 health openai:work for gpt-5.5 cooling until 961 timeout step 2",
		"1201 health openai:work for gpt-5.5 cooling until 1501 timeout step 3",
		"1501 team#8 try openai/gpt-5.5 openai:work 500 timeout 1s probe",
		"2220 dm#11 skip openai/gpt-5.5 timeout cooling",
		"4202 team#19 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
		"4262 dm#20 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
	}, "24 turns 24 answered 0 failed, anthropic/claude-opus-4-8=15 openai/gpt-5.5=9, 38 calls 14 failed, 4 notices, waited 0s, slowest 3s"},
	"expired-subscription-with-key.yaml": {[]string{
		"600 dm#2 try openai/gpt-5.5 openai:me@example.com 429 rate_limit 0s",
		"600 health openai:me@example.com cooling until 2400 rate_limit step 1",
		"601 dm#2 try openai/gpt-5.5 openai:backup ok 1s",
		"1201 dm#3 try openai/gpt-5.5 openai:backup ok 1s",
		"2701 other#4 try openai/gpt-5.5 openai:me@example.com ok 1s",
		"10800 other#5 try openai/gpt-5.5 openai:me@example.com auth_permanent 0s",
		"10800 health openai:me@example.com disabled until 11400 auth_permanent step 1",
		"10801 other#5 try openai/gpt-5.5 openai:backup ok 1s",
		"11100 health openai:me@example.com step 0",
		"11401 third#6 try openai/gpt-5.5 openai:me@example.com ok 1s",
	}, "6 turns 6 answered 0 failed, openai/gpt-5.5=6, 8 calls 2 failed, 0 notices, waited 0s, slowest 1s"},
	"billing-stop.yaml": {[]string{
		"0 health anthropic:work disabled until 18000 billing step 1",
		"1 dm#1 notice ↪️ Model Fallback: openai/gpt-5.5 (selected anthropic/claude-opus-4-8; billing)",
		"3600 dm#2 skip anthropic/claude-opus-4-8 billing disabled",
		"7200 insists#3 try anthropic/claude-opus-4-8 anthropic:work 400 billing 0s probe",
		"7200 insists#3 failed billing retry 18000",
		"7201 insists#4 skip anthropic/claude-opus-4-8 billing disabled",
		"17879 dm#5 skip anthropic/claude-opus-4-8 billing disabled",
		"17880 dm#6 try anthropic/claude-opus-4-8 anthropic:work 400 billing 0s probe",
		"18060 health anthropic:work disabled until 54060 billing step 2",
		"21901 health anthropic:work step 0",
		"54061 dm#8 notice ↪️ Model Fallback cleared: anthropic/claude-opus-4-8 (was openai/gpt-5.5)",
	}, "8 turns 6 answered 2 failed, anthropic/claude-opus-4-8=1 openai/gpt-5.5=5, 20 calls 13 failed, 2 notices, waited 0s, slowest 1s"},
	"five-hundred-chats.yaml": {[]string{
		"661 early#1 try openai/gpt-5.5 openai:work 429 rate_limit 1s",
		"661 health openai:work for gpt-5.5 cooling until 22261 rate_limit step 1",
		"720 chat1#2 skip openai/gpt-5.5 rate_limit cooling",
		"721 chat1#2 notice ↪️ Model Fallback: anthropic/claude-opus-4-8 (selected openai/gpt-5.5; rate limit)",
		"901 #0 try openai/gpt-5.5 openai:work 429 rate_limit 1s probe",
		"7261 owner command",
		"9001 report#1002 answer anthropic/claude-opus-4-8: The stand-in answers.",
		"9061 watch#1003 answer anthropic/claude-opus-4-8: The stand-in answers.",
		"11101 #0 try openai/gpt-5.5 openai:work 429 rate_limit 1s probe",
		"11401 #0 try openai/gpt-5.5 openai:work ok 1s probe",
		"11401 health openai:work for gpt-5.5 step 0",
		"12002 chat500#1503 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
	}, "1503 turns 1503 answered 0 failed, anthropic/claude-opus-4-8=1003 openai/gpt-5.5=500, 1541 calls 37 failed, 1001 notices, waited 0s, slowest 2s"},
	"flapping-primary.yaml": {[]string{
		"90 health openai:work cooling until 120 overloaded step 1",
		"90 dm#3 notice ↪️ Model Fallback: anthropic/claude-opus-4-8 (selected openai/gpt-5.5; overloaded)",
		"135 health openai:work step 0",
		"135 dm#4 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
		"270 health openai:work for gpt-5.5 cooling until 300 timeout step 1",
		"270 dm#7 notice ↪️ Model Fallback: anthropic/claude-opus-4-8 (selected openai/gpt-5.5; connection problem)",
		"315 dm#8 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
		"450 health openai:work for gpt-5.5 cooling until 480 rate_limit step 1",
	}, "14 turns 14 answered 0 failed, anthropic/claude-opus-4-8=3 openai/gpt-5.5=11, 17 calls 3 failed, 6 notices, waited 0s, slowest 0s"},
	"everything-overloaded.yaml": {[]string{
		"0.4 health anthropic:work cooling until 30.4 overloaded step 1",
		"3.3 patient#1 wait 2.5s overloaded",
		"5.4 hasty#2 try anthropic/claude-opus-4-8 anthropic:work 529 overloaded 0.4s probe",
		"20 hasty#2 stopped",
		"30 patient#1 notice The AI service is temporarily overloaded. I’m still retrying; this may take a few minutes.",
		"41.1 health anthropic:work cooling until 101.1 overloaded step 2",
		"103.3 patient#1 answer anthropic/claude-opus-4-8: Here I am again.",
	}, "2 turns 1 answered 0 failed, anthropic/claude-opus-4-8=1, 17 calls 16 failed, 1 notices, waited 110.9s, slowest 103.3s"},
	"hanging-stream.yaml": {[]string{
		"120 dm#1 try openai/gpt-5.5 openai:work timeout 120s",
		"122 dm#1 answer anthropic/claude-opus-4-8: The stand-in answers.",
		"603 dm#2 try openai/gpt-5.5 openai:work 200 timeout 3s",
		"605 dm#2 answer anthropic/claude-opus-4-8: The stand-in answers.",
		"1230 other#3 try groq/silent groq:env timeout 30s",
		"1232 other#3 answer anthropic/claude-opus-4-8: The stand-in answers.",
		"1801 dm#4 notice ↪️ Model Fallback cleared: openai/gpt-5.5 (was anthropic/claude-opus-4-8)",
	}, "4 turns 4 answered 0 failed, anthropic/claude-opus-4-8=3 openai/gpt-5.5=1, 7 calls 3 failed, 3 notices, waited 0s, slowest 122s"},
	"strict-selection.yaml": {[]string{
		"0 dm command",
		"2 dm#1 answer anthropic/claude-opus-4-8: The chosen model answers.",
		"60 dm#2 try anthropic/claude-opus-4-8 anthropic:work 429 rate_limit 0s",
		"72 dm#2 wait 12s retry_after",
		"73 dm#2 answer anthropic/claude-opus-4-8: The chosen model answers.",
		"300 dm#3 try anthropic/claude-opus-4-8 anthropic:work 401 auth 0s",
		"300 dm#3 failed auth retry 330",
		"360 dm command",
		"421 dm#4 answer openai/gpt-5.5: The usual model answers.",
	}, "4 turns 3 answered 1 failed, anthropic/claude-opus-4-8=2 openai/gpt-5.5=1, 5 calls 2 failed, 0 notices, waited 12s, slowest 13s"},
}

func TestShippedScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scenarios, "*.yaml"))
	if err != nil || len(files) != len(shipped) {
		t.Errorf("%d scenario files, but %d are tested (%v)", len(files), len(shipped), err)
	}
	for name, want := range shipped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(scenarios, name))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(data), "# ") {
				t.Error("the scenario does not say what it is about")
			}
			out, trace := drill(t, name, data, nil)
			left := want.lines
			for _, r := range trace {
				if len(left) > 0 && r.short() == left[0] {
					left = left[1:]
				}
			}
			if len(left) > 0 {
				t.Errorf("missing, at its place: %s\n%s", left[0], out)
			}
			if got := trace[len(trace)-1].short(); !strings.HasSuffix(got, " summary "+want.summary) {
				t.Errorf("got  %s\nwant … summary %s", got, want.summary)
			}
		})
	}
}

// However many chats wait for a lead, it is asked once every five minutes, and besides when an owner wants it.
func TestFiveHundredChatsCostOneProbeEveryFiveMinutes(t *testing.T) {
	const name = "five-hundred-chats.yaml"
	data, err := os.ReadFile(filepath.Join(scenarios, name))
	if err != nil {
		t.Fatal(err)
	}
	_, trace := drill(t, name, data, nil)
	regular, byHand, last := 0, 0, 601.0 // when the job ran before the lead was away
	for _, r := range trace {
		if r.Kind != "attempt" || !r.Probe {
			continue
		}
		if r.T-last != 300 {
			byHand++
			continue
		}
		regular, last = regular+1, r.T
	}
	if regular != 36 || byHand != 1 {
		t.Errorf("%d probes of the job and %d others", regular, byHand)
	}
}

// The page about `bot simulate` shows a timeline; it must be the one that the program prints.
func TestTheDocumentedTimelineIsReal(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(scenarios, "rate-limit-one-model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = simulate.Run(context.Background(), simulate.Options{
		Name: "rate-limit-one-model.yaml", Scenario: data, Out: &out, Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), out.String()) {
		t.Errorf("docs/simulate.md does not hold this timeline:\n%s", out.String())
	}
}
