// Package telegram connects one Telegram bot account (spec/chat.md §2.9).
//
// Messages arrive by long polling, or by webhook when Config.WebhookURL is set. Both hand one update
// after the other to the same intake, and tell Telegram "seen" only behind what the sink has stored:
//
//	getUpdates(offset) ── batch ──► Sink.Accept, one by one ──► Offsets.Save ──► getUpdates(offset')
//	      ▲                              │ error: the rest comes again
//	      └──────── back-off ◄───────────┘
//
//	Telegram ── POST ──► ServeHTTP ──► Sink.Accept ── stored ──► 200
//	      ▲                              │ error
//	      └────────────── 503 ◄──────────┘
//
// Buttons carry the token of a menu (channels.Menus) and a number, nothing else; a press is passed on
// as the command it stands for.
//
// The library go-telegram-bot-api is frozen at Bot API 5.5, so it serves as transport and for the
// value types that have not changed; all calls are raw (spec/chat.md §9.3). The bot token is part
// of every URL: no error or log record leaves this package before it was searched for it.
package telegram
