package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"understudy/llm"
)

const (
	ollamaPort      = "11434"
	ollamaTimeout   = time.Second
	ollamaBodyLimit = 1 << 20
	ollamaFallbacks = 2
)

// errNotLoopback tells that OLLAMA_HOST names another machine.
var errNotLoopback = errors.New("not on this machine")

// ollamaTags is the part of GET /api/tags that is read.
type ollamaTags struct {
	Models []ollamaModel `json:"models"`
}

type ollamaModel struct {
	Name         string   `json:"name"`
	Size         int64    `json:"size"`
	RemoteHost   string   `json:"remote_host"` // a model that runs elsewhere
	Capabilities []string `json:"capabilities"`
	Details      struct {
		Family   string   `json:"family"`
		Families []string `json:"families"`
	} `json:"details"`
}

// fromOllama asks an Ollama on loopback for its models. r keeps its empty source when there is none.
func fromOllama(ctx context.Context, d Deps, r *Result) {
	root, err := ollamaRoot(d.Getenv("OLLAMA_HOST"))
	if err != nil {
		r.Lines = append(r.Lines, "OLLAMA_HOST is not used ("+err.Error()+"): set models.providers.ollama.baseUrl to use it")
	}
	tags, err := askOllama(ctx, d.HTTP, root)
	if err != nil {
		return // nobody there is the ordinary case
	}
	names := chatModels(tags.Models)
	if len(names) == 0 {
		r.Lines = append(r.Lines, "Ollama runs at "+root.Host+" but has no chat model: `ollama pull` one")
		return
	}
	r.Source = SourceOllama
	r.Primary = llm.ModelRef{Provider: "ollama", Model: names[0]}
	for _, name := range names[1:min(len(names), 1+ollamaFallbacks)] {
		r.Fallbacks = append(r.Fallbacks, llm.ModelRef{Provider: "ollama", Model: name})
	}
	r.Providers = append(r.Providers, Found{Provider: "ollama", BaseURL: root.JoinPath("v1").String(), Models: names})
	r.Lines = append(r.Lines, fmt.Sprintf("Ollama runs at %s with %s: the biggest leads", root.Host, strings.Join(names, ", ")))
}

// ollamaRoot reads OLLAMA_HOST the way Ollama does: a host, a port, both, or a URL. The result is
// always usable; the error says why the value was not.
func ollamaRoot(host string) (*url.URL, error) {
	fallback := &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", ollamaPort)}
	host = strings.TrimSpace(host)
	if host == "" {
		return fallback, nil
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return fallback, errors.New("not a host")
	}
	name, port := u.Hostname(), cmp.Or(u.Port(), ollamaPort)
	switch ip, err := netip.ParseAddr(name); {
	case name == "" || err == nil && ip.IsUnspecified():
		name = "127.0.0.1" // what a server listens on; a client asks loopback
	case name == "localhost" || err == nil && ip.IsLoopback():
	default:
		return fallback, errNotLoopback
	}
	return &url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(name, port)}, nil
}

// askOllama asks for the installed models, in at most ollamaTimeout. It follows no redirect.
func askOllama(ctx context.Context, client *http.Client, root *url.URL) (ollamaTags, error) {
	if client == nil {
		transport := &http.Transport{DisableKeepAlives: true}
		client = &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ollamaTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, root.JoinPath("api", "tags").String(), nil)
	if err != nil {
		return ollamaTags{}, fmt.Errorf("asking ollama: %w", err)
	}
	res, err := client.Do(req)
	if err != nil {
		return ollamaTags{}, fmt.Errorf("asking ollama: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return ollamaTags{}, fmt.Errorf("asking ollama: status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, ollamaBodyLimit))
	if err != nil {
		return ollamaTags{}, fmt.Errorf("reading ollama's models: %w", err)
	}
	var tags ollamaTags
	if err := json.Unmarshal(body, &tags); err != nil {
		return ollamaTags{}, fmt.Errorf("reading ollama's models: %w", err)
	}
	return tags, nil
}

// chatModels returns the names of the models one can talk to on this machine, biggest first.
func chatModels(ms []ollamaModel) []string {
	ms = slices.Clone(ms)
	slices.SortStableFunc(ms, func(a, b ollamaModel) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, m := range ms {
		if printable(m.Name) && m.chats() {
			names = append(names, m.Name)
		}
	}
	return names
}

// printable reports whether a name fits on the terminal and in a model reference.
func printable(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsGraphic(r)
	})
}

// chats reports whether the model holds conversations here. Older servers list no capabilities;
// then family and name tell embedders and rerankers apart.
func (m ollamaModel) chats() bool {
	if m.RemoteHost != "" {
		return false
	}
	if len(m.Capabilities) > 0 {
		return slices.Contains(m.Capabilities, "completion")
	}
	for _, family := range append([]string{m.Details.Family}, m.Details.Families...) {
		if strings.Contains(strings.ToLower(family), "bert") {
			return false
		}
	}
	name := strings.ToLower(m.Name)
	for _, mark := range []string{"embed", "bge-", "minilm", "rerank"} {
		if strings.Contains(name, mark) {
			return false
		}
	}
	return true
}
