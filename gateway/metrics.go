package gateway

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MaxSeries is the most label combinations that all counters together may have (spec/chat.md §7.4).
// Further ones are counted under "other".
const MaxSeries = 2048

// other stands for every label value that is not in its closed list.
const other = "other"

// MetricsConfig closes the lists of label values that depend on the configuration.
type MetricsConfig struct {
	Channels []string // channel names
	Models   []string // "provider/model" of every configured candidate
	Voices   []string // names of the configured providers of speech
	// Refresh is called before the metrics are read, to record what is only known then. nil = nothing.
	Refresh func()
}

// Metrics counts what the bot does (spec/chat.md §7.4). Its methods take plain words and keep what
// is not in a closed list out of the labels, so no id, key, name or text can get in. All of them
// are safe for concurrent use and do nothing on a nil *Metrics.
type Metrics struct {
	registry *prometheus.Registry
	refresh  func()

	mu    sync.Mutex
	lists map[string][]string // label → allowed values
	rests map[[2]string]int   // what rested when it was recorded last, by labels
	seen  map[string]bool     // label combinations in use

	received, turns, failovers, notices, deliveries  *prometheus.CounterVec
	reconnects, limited, probes, compactions, tokens *prometheus.CounterVec
	tasks, beats, speech                             *prometheus.CounterVec
	turnTime, firstToken, queueWait                  prometheus.Histogram
	queue, up, resting                               *prometheus.GaugeVec
}

// The closed lists of label values that the code itself fixes.
func fixedLists() map[string][]string {
	reasons := []string{
		"auth", "auth_permanent", "billing", "rate_limit", "overloaded", "timeout", "format", "context_overflow",
		"model_not_found", "session_expired", "refusal", "aborted", "empty_response", "no_error_details",
		"unclassified", "capability", "internal",
	}
	return map[string][]string{
		"chat_type": {"direct", "group", "channel"},
		"outcome":   {"ok", "answered", "silent", "failed", "stopped", "aborted", "sent", "unknown", "refused", "suppressed"},
		"trigger":   {"message", "command", "cron", "heartbeat", "recovery"},
		"reason":    reasons,
		"kind": {
			"assistant", "heartbeat", "cron", "notice", "command", "error",
			"fallback", "cleared", "retrying", "compaction", "queue", "restart", "profile",
		},
		"error_class": {"none", "retry", "unsure", "refused", "gone", "missing", "too_long", "markup", "moved"},
		"probe":       append([]string{"ok"}, reasons...),
		"state":       {"waiting", "running", "outbox", "sending", "backlog", "held"},
		"type":        {"input", "output", "cache_read", "cache_write", "reasoning"},
		"run_status":  {"ok", "error", "skipped"},
		"beat_result": {"ok", "alert", "skipped", "failed"},
		"attempt":     {"ok", "failed", "timeout", "cancelled"},
		"method":      {"send", "edit", "delete", "typing", "receive", "upload", "command", "react", "stream"},
	}
}

// NewMetrics returns counters in a registry of their own, with those of the Go runtime.
func NewMetrics(c MetricsConfig) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), refresh: c.Refresh, lists: fixedLists(), seen: map[string]bool{}}
	m.lists["channel"] = c.Channels
	m.lists["voice"] = c.Voices
	m.Configured(c.Models)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.received = m.counter("messages_received_total", "Messages that arrived.", "channel", "chat_type")
	m.turns = m.counter("turns_total", "Turns that ended.", "channel", "model", "provider", "outcome", "trigger")
	m.failovers = m.counter("model_failover_total", "Changes to another model within a turn.", "from_model", "to_model", "reason")
	m.notices = m.counter("notices_total", "Operational notices.", "kind", "outcome")
	m.deliveries = m.counter("deliveries_total", "Messages handed to a platform.", "channel", "kind", "outcome", "error_class")
	m.reconnects = m.counter("channel_reconnects_total", "Times a connection was lost.", "channel")
	m.limited = m.counter("rate_limited_total", "Calls a platform asked to slow down.", "channel", "method")
	m.probes = m.counter("probe_total", "Probes of models that had failed.", "provider", "outcome")
	m.tasks = m.counter("cron_runs_total", "Runs of scheduled tasks that ended.", "status")
	m.beats = m.counter("heartbeat_total", "Heartbeats.", "result")
	m.speech = m.counter("tts_total", "Attempts to speak an answer.", "provider", "outcome")
	m.compactions = m.counter("compactions_total", "Compactions of a transcript.", "outcome")
	m.tokens = m.counter("tokens_total", "Tokens used.", "provider", "model", "type")
	m.turnTime = m.histogram("turn_duration_seconds", "Time from a turn's start to its end.")
	m.firstToken = m.histogram("first_token_seconds", "Time from a message to the first text of its answer.")
	m.queueWait = m.histogram("queue_wait_seconds", "Time a message waited for its turn.")
	m.queue = m.gauge("queue_depth", "What waits and what is worked on, by state.", "state")
	m.resting = m.gauge("profile_resting", "Credentials that rest now, by why.", "provider", "reason")
	m.up = m.gauge("channel_up", "Whether the account is connected.", "channel", "account")
	return m
}

// Configured adds models ("provider/model") to those that labels may name, after a reload for example. None
// is taken out: its counters stay.
func (m *Metrics) Configured(models []string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	add := func(list, v string) {
		if !slices.Contains(m.lists[list], v) {
			m.lists[list] = append(m.lists[list], v)
		}
	}
	for _, ref := range models {
		provider, _, _ := strings.Cut(ref, "/")
		add("model", ref)
		add("provider", provider)
	}
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "bot", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "bot", Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: "bot", Name: name, Help: help, Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
	})
	m.registry.MustRegister(h)
	return h
}

// Handler serves the text format.
func (m *Metrics) Handler() http.Handler {
	h := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	if m.refresh == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.refresh()
		h.ServeHTTP(w, r)
	})
}

// known returns v if the closed list of label holds it, else "other". m.mu is held.
func (m *Metrics) known(label, v string) string {
	if slices.Contains(m.lists[label], v) {
		return v
	}
	return other
}

// labels closes every value, and keeps the number of combinations below MaxSeries. The arguments
// are pairs of a list's name and a value.
func (m *Metrics) labels(name string, pairs ...string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		values = append(values, m.known(pairs[i], pairs[i+1]))
	}
	key := name + "\x00" + strings.Join(values, "\x00")
	if !m.seen[key] && len(m.seen) >= MaxSeries {
		for i := range values {
			values[i] = other
		}
		return values
	}
	m.seen[key] = true
	return values
}

// MessageReceived counts a message that arrived; kind is a chat.Kind.
func (m *Metrics) MessageReceived(channel, kind string) {
	if m != nil {
		m.received.WithLabelValues(m.labels("received", "channel", channel, "chat_type", kind)...).Inc()
	}
}

// Turn is a finished turn for the metrics. A duration of 0 is not observed.
type Turn struct {
	Channel string
	Model   string // "provider/model": who answered, or who was to where nobody did
	Outcome string // answered, silent, failed, stopped
	Trigger string // message, command, cron, heartbeat, recovery

	Duration, Waited time.Duration
}

// TurnEnded counts a turn and its times.
func (m *Metrics) TurnEnded(t Turn) {
	if m == nil {
		return
	}
	provider, _, _ := strings.Cut(t.Model, "/")
	m.turns.WithLabelValues(m.labels("turns", "channel", t.Channel, "model", t.Model, "provider", provider,
		"outcome", t.Outcome, "trigger", t.Trigger)...).Inc()
	for _, o := range []struct {
		h prometheus.Histogram
		d time.Duration
	}{{m.turnTime, t.Duration}, {m.queueWait, t.Waited}} {
		if o.d > 0 {
			o.h.Observe(o.d.Seconds())
		}
	}
}

// ModelFailover counts a change of model; both are "provider/model", reason an llm.Reason.
func (m *Metrics) ModelFailover(from, to, reason string) {
	if m != nil {
		m.failovers.WithLabelValues(m.labels("failovers", "model", from, "model", to, "reason", reason)...).Inc()
	}
}

// CronRun counts a run of a scheduled task that ended: ok, error or skipped.
func (m *Metrics) CronRun(status string) {
	if m != nil {
		m.tasks.WithLabelValues(m.labels("tasks", "run_status", status)...).Inc()
	}
}

// Heartbeat counts a heartbeat: ok, alert, skipped or failed.
func (m *Metrics) Heartbeat(result string) {
	if m != nil {
		m.beats.WithLabelValues(m.labels("beats", "beat_result", result)...).Inc()
	}
}

// Notice counts an operational notice.
func (m *Metrics) Notice(kind, outcome string) {
	if m != nil {
		m.notices.WithLabelValues(m.labels("notices", "kind", kind, "outcome", outcome)...).Inc()
	}
}

// Delivery counts a message handed to a platform; kind is a chat.Class's name.
func (m *Metrics) Delivery(channel, kind, outcome, errorClass string) {
	if m != nil {
		m.deliveries.WithLabelValues(m.labels("deliveries", "channel", channel, "kind", kind,
			"outcome", outcome, "error_class", errorClass)...).Inc()
	}
}

// ChannelUp records the connection of an account; it is labelled by its place in the
// configuration, since account names are the operator's own words.
func (m *Metrics) ChannelUp(channel string, account int, connected bool) {
	if m == nil {
		return
	}
	values := m.labels("up", "channel", channel)
	value := 0.0
	if connected {
		value = 1
	}
	m.up.WithLabelValues(append(values, place(account))...).Set(value)
}

// ChannelGone forgets the connection of an account that is not configured any more.
func (m *Metrics) ChannelGone(channel string, account int) {
	if m != nil {
		m.up.DeleteLabelValues(append(m.labels("up", "channel", channel), place(account))...)
	}
}

// Resting is a credential that rests; Reason is an llm.Reason.
type Resting struct{ Provider, Reason string }

// ProfilesResting records the credentials that rest now, each once for every reason. What is not among
// them does not rest any more.
func (m *Metrics) ProfilesResting(now []Resting) {
	if m == nil {
		return
	}
	count := map[[2]string]int{}
	for _, r := range now {
		count[[2]string(m.labels("resting", "provider", r.Provider, "reason", r.Reason))]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for labels := range m.rests {
		if count[labels] == 0 {
			m.resting.DeleteLabelValues(labels[:]...)
		}
	}
	for labels, n := range count {
		m.resting.WithLabelValues(labels[:]...).Set(float64(n))
	}
	m.rests = count
}

// place names small numbers and lumps the rest together.
func place(n int) string {
	if n < 0 || n > 9 {
		return other
	}
	return string(rune('0' + n))
}

// ChannelReconnect counts a lost connection.
func (m *Metrics) ChannelReconnect(channel string) {
	if m != nil {
		m.reconnects.WithLabelValues(m.labels("reconnects", "channel", channel)...).Inc()
	}
}

// RateLimited counts a call that a platform asked to slow down.
func (m *Metrics) RateLimited(channel, method string) {
	if m != nil {
		m.limited.WithLabelValues(m.labels("limited", "channel", channel, "method", method)...).Inc()
	}
}

// Probe counts a probe of a model that had failed: ok, or the llm.Reason why it failed again.
func (m *Metrics) Probe(provider, outcome string) {
	if m != nil {
		m.probes.WithLabelValues(m.labels("probes", "provider", provider, "probe", outcome)...).Inc()
	}
}

// Speech counts an attempt of a provider of speech: ok, failed, timeout or cancelled.
func (m *Metrics) Speech(provider, outcome string) {
	if m != nil {
		m.speech.WithLabelValues(m.labels("speech", "voice", provider, "attempt", outcome)...).Inc()
	}
}

// Compaction counts an attempt to shorten a transcript: ok or failed.
func (m *Metrics) Compaction(outcome string) {
	if m != nil {
		m.compactions.WithLabelValues(m.labels("compactions", "outcome", outcome)...).Inc()
	}
}

// Tokens counts used tokens by kind: input, output, cache_read, cache_write, reasoning. Model is
// "provider/model".
func (m *Metrics) Tokens(model, kind string, n int) {
	if m == nil || n <= 0 {
		return
	}
	provider, _, _ := strings.Cut(model, "/")
	m.tokens.WithLabelValues(m.labels("tokens", "provider", provider, "model", model, "type", kind)...).Add(float64(n))
}

// FirstText records how long after it began the first of a turn's answer was to be seen.
func (m *Metrics) FirstText(after time.Duration) {
	if m != nil && after > 0 {
		m.firstToken.Observe(after.Seconds())
	}
}

// QueueDepth records how much is in a state: waiting and running (turns), outbox (things in the queues
// of destinations), sending (destinations that are worked off), backlog (destinations with more than
// fits their queue), held (conversations whose platform wants no messages for a while).
func (m *Metrics) QueueDepth(state string, n int) {
	if m != nil {
		m.queue.WithLabelValues(m.labels("queue", "state", state)...).Set(float64(n))
	}
}
