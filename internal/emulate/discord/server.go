package discord

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/emulate/pipe"
)

// Root is the API root of the in-memory server; any other host works as well.
const Root = "http://discord.test"

// DefaultBotID is the user id of the bot of a Config without a token.
const DefaultBotID = "110201543000000001"

// ApplicationID is the id of the bot's application.
const ApplicationID = "110201543000000002"

const (
	defaultHeartbeat   = 41250 * time.Millisecond
	defaultUploadLimit = 10 << 20
	defaultRate        = 5
	sessionsADay       = 1000
)

// Config describes the bot and its rights. The zero value is a bot named understudy with all
// privileged intents.
type Config struct {
	Token string // bare; "" = one for DefaultBotID
	Name  string
	// NoMessageContent and NoGuildMembers refuse the privileged intents.
	NoMessageContent, NoGuildMembers bool
	Heartbeat                        time.Duration // 0 = 41.25 s
	UploadLimit                      int           // bytes per message; 0 = 10 MiB
	// MessageRate is how many messages may be sent to a channel in 5 s; 0 = 5, negative = any number.
	MessageRate int
	// ManagesThreads gives the bot the right to open locked threads.
	ManagesThreads bool
	// Offset is by how much the server's clock is ahead of the machine's.
	Offset time.Duration
}

// Server is one bot's view of Discord. All methods may be used from several goroutines.
type Server struct {
	cfg    Config
	botID  string
	http   *http.Server
	pipes  *pipe.Network
	serves sync.WaitGroup
	links  sync.WaitGroup
	closed chan struct{}
	once   sync.Once

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced with every change
	root      string
	lastID    uint64
	guilds    []*Guild
	channels  map[string]*Channel
	users     map[string]User
	messages  map[string][]*Message // by channel
	files     map[string]File       // by path
	denied    map[string]denial     // by channel
	nonces    map[string]nonce
	buckets   map[string]*bucket
	faults    []*fault
	calls     []Call
	commands  map[string][]byte // by scope
	waiting   map[string]*Interaction
	sessions  []*session
	current   *link
	connects  []Connect
	starts    []time.Time // identifies
	gateFault []GatewayFault
	away      bool // takes no connection to the gateway
	revoked   bool // the token counts no more
	lose      int
	double    int
	reorder   int
	held      []event
	serial    int
}

type denial struct {
	status, code int
	message      string
}

type nonce struct {
	message *Message
	until   time.Time
}

// New starts a server; Close ends it.
func New(cfg Config) *Server {
	if cfg.Token == "" {
		cfg.Token = TokenOf(DefaultBotID)
	}
	if cfg.Name == "" {
		cfg.Name = "understudy"
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = defaultHeartbeat
	}
	if cfg.UploadLimit == 0 {
		cfg.UploadLimit = defaultUploadLimit
	}
	if cfg.MessageRate == 0 {
		cfg.MessageRate = defaultRate
	}
	s := &Server{
		cfg:      cfg,
		pipes:    pipe.New(),
		closed:   make(chan struct{}),
		changed:  make(chan struct{}),
		root:     Root,
		channels: map[string]*Channel{},
		users:    map[string]User{},
		messages: map[string][]*Message{},
		files:    map[string]File{},
		denied:   map[string]denial{},
		nonces:   map[string]nonce{},
		buckets:  map[string]*bucket{},
		commands: map[string][]byte{},
		waiting:  map[string]*Interaction{},
	}
	head, _, _ := strings.Cut(cfg.Token, ".")
	if id, err := base64.RawURLEncoding.DecodeString(head); err == nil {
		s.botID = string(id)
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.serve(s.pipes)
	return s
}

// TokenOf returns a token in Discord's form for a bot's user id.
func TokenOf(botID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(botID)) + ".GaBcDe.zyXWvutSRqpONmlkJIhgFEdcBA9876543210-_"
}

func (s *Server) serve(l net.Listener) {
	s.serves.Go(func() { _ = s.http.Serve(l) }) // always ends with ErrServerClosed
}

// Transport returns a new HTTP transport whose every connection, whatever the host, leads here.
func (s *Server) Transport() http.RoundTripper { return s.pipes.Transport() }

// Dial connects to the server, whatever the address.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.pipes.Dial(ctx, network, addr)
}

// Listen also serves on a free port of loopback and returns the API root.
func (s *Server) Listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("emulated discord: %w", err)
	}
	s.mu.Lock()
	s.root = "http://" + l.Addr().String()
	root := s.root
	s.mu.Unlock()
	s.serve(l)
	return root, nil
}

// Close cuts all connections and waits until nothing of the server runs any more.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	_ = s.http.Close()
	s.serves.Wait()
	s.links.Wait()
}

// Token returns the bare bot token.
func (s *Server) Token() string { return s.cfg.Token }

// BotID returns the user id of the bot.
func (s *Server) BotID() string { return s.botID }

// Mention returns the bot's name as a mention in a text.
func (s *Server) Mention() string { return "<@" + s.botID + ">" }

// now is what the server's clock shows.
func (s *Server) now() time.Time { return time.Now().Add(s.cfg.Offset) }

// newID makes an id that grows with time, as Discord's do; the lock is held. Bubbles begin in the
// year 2000, so the epoch is that year and not Discord's.
func (s *Server) newID() string {
	const epoch = 946684800000
	id := max(uint64(max(s.now().UnixMilli()-epoch, 0)+1e6)<<22, s.lastID+1)
	s.lastID = id
	return strconv.FormatUint(id, 10)
}

// touch tells those who wait that something changed; the lock is held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// WaitFor waits until cond holds, looking at every change, or until ctx ends and then returns its
// cause. cond may call the methods of the server.
func (s *Server) WaitFor(ctx context.Context, cond func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closed:
			return net.ErrClosed
		}
	}
}
