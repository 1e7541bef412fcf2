package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/gateway"
	emutelegram "understudy/internal/emulate/telegram"
	"understudy/internal/sqlite"
)

// alone opens an office with one person on Telegram who may write.
func alone(t *testing.T, ahead time.Duration) (o *office, config string) {
	o = newOffice(t, "")
	config = o.telegramServer(`dmPolicy: allowlist, allowFrom: ["1001"]`)
	if ahead != 0 {
		o.tg.Close()
		o.tg = emutelegram.New(emutelegram.Config{Token: o.tg.Token(), Offset: -ahead})
		t.Cleanup(o.tg.Close)
	}
	o.person(aliceID, "Alice")
	o.configure(config)
	o.open()
	return o, config
}

// What people write cannot be stored: readiness says so while the connection stands, in words, until
// something was stored again.
func TestAFailedIntakeIsSeenFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := alone(t, 0)
		store := func(want gateway.Readiness) {
			t.Helper()
			ready, problems := o.bot.Ready(t.Context())
			told := len(problems) > 0 && problems[0].Subject == "store" && strings.Contains(problems[0].Detail, "`bot doctor` says what to do")
			if ready != want || told != (want == gateway.Degraded) {
				t.Errorf("%s %+v, want %s", ready, problems, want)
			}
		}
		run := func(query string) {
			t.Helper()
			db, err := sqlite.Open(t.Context(), filepath.Join(o.dir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: -1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Writer().ExecContext(t.Context(), query); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		store(gateway.Ready)
		run("CREATE TRIGGER full BEFORE INSERT ON inbound BEGIN SELECT RAISE(FAIL, 'no room'); END")
		o.tg.UserSays(aliceID, aliceID, "hello")
		pass(10 * time.Second)
		store(gateway.Degraded)
		run("DROP TRIGGER full")
		o.settle()
		store(gateway.Ready)
		if sent := o.tg.Sent(aliceID); len(sent) != 1 {
			t.Errorf("said %v", sent)
		}
	})
}

// An emptied file changes nothing but what is told, like one that is gone.
func TestAnEmptiedConfigurationChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, config := alone(t, 0)
		if err := os.WriteFile(o.file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		synctest.Wait()
		o.tg.UserSays(aliceID, aliceID, "hello")
		o.settle()
		if sent := o.tg.Sent(aliceID); len(sent) != 1 || o.state("telegram", "") != "connected" {
			t.Errorf("%s, said %v", o.state("telegram", ""), sent)
		}
		if !strings.Contains(o.logs.String(), "the file is empty") {
			t.Errorf("the log does not tell: %s", o.logs)
		}
		restart := func(text string, want int) {
			t.Helper()
			o.configure(config + text)
			pass(10 * time.Second)
			synctest.Wait()
			if n := strings.Count(o.logs.String(), "config_needs_restart"); n != want {
				t.Errorf("%q: a restart was asked for %d times, want %d\n%s", text, n, want, o.logs)
			}
		}
		restart("gateway: {allowedHosts: [bot.example.com]}\n", 1)
		restart("", 1) // as it was at the start
	})
}

// An account that is taken out tells how much it had still to say.
func TestARemovedAccountTellsWhatItLeavesUnsaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := alone(t, 0)
		o.tg.Inject(emutelegram.Fault{Method: "sendMessage", Times: -1, Status: 500})
		o.tg.UserSays(aliceID, aliceID, "hello")
		o.settle()
		o.configure("logging: {level: warn}\n")
		pass(10 * time.Second)
		synctest.Wait()
		if !strings.Contains(o.logs.String(), "msg=channel_removed channel=telegram account=\"\" unsent=1") {
			t.Error(o.logs)
		}
	})
}

// A clock that is hours off leaves nobody unanswered. Who wrote too long ago is told, once, and the
// operator too.
func TestOldMessagesAreLeftAloneInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := alone(t, 2*time.Hour)
		o.tg.UserSays(aliceID, aliceID, "hello")
		o.settle()
		if sent := o.tg.Sent(aliceID); len(sent) != 1 {
			t.Errorf("said %v\n%s", sent, o.logs)
		}
		o.close()
		for range 3 {
			o.tg.UserSays(aliceID, aliceID, "is anybody there?")
			pass(61 * time.Minute)
		}
		o.open()
		pass(10 * time.Second)
		synctest.Wait()
		sent := o.tg.Sent(aliceID)
		if len(sent) != 2 || !strings.Contains(sent[1].Text, "I was away") {
			t.Errorf("said %v", sent)
		}
		if n := strings.Count(o.logs.String(), "reason=too_old count=3 oldest=3h3m"); n != 1 {
			t.Errorf("told %d times\n%s", n, o.logs)
		}
	})
}
