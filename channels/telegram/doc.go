// Package telegram connects one Telegram bot account (spec/chat.md §2.9).
//
// Messages arrive by long polling. The offset that tells Telegram "seen" moves only behind what the
// sink has stored:
//
//	getUpdates(offset) ── batch ──► Sink.Accept, one by one ──► Offsets.Save ──► getUpdates(offset')
//	      ▲                              │ error: the rest comes again
//	      └──────── back-off ◄───────────┘
//
// The library go-telegram-bot-api is frozen at Bot API 5.5, so it serves as transport and for the
// value types that have not changed; all calls are raw (spec/chat.md §9.3). The bot token is part
// of every URL: no error or log record leaves this package before it was searched for it.
package telegram
