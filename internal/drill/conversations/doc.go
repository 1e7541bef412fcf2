// Package conversations holds what people live through with the bot on Slack, Discord and Telegram, end
// to end: the real app with its databases, the real SDKs, emulated platforms and model APIs, in virtual
// time. Each file of testdata is meant to be read.
//
// A file says in its first lines what it shows. The section bot.yaml holds what matters of the
// configuration, channel.yaml what is added to the channel's block, script what is done, once for all
// platforms; then one section for each platform shows the same steps, with what came of them below.
// `go test ./internal/drill/conversations -update` writes the latter anew.
//
//	alice: hello                         a person writes to the bot in private
//	alice in ops: {bot} hello            … in a room; {bot} mentions the bot
//	alice in thread: hello               … in the thread of the newest message that she began one with
//	alice in hall: {bot} hello           … in a room that the configuration does not list
//	alice sends a picture: look          … with a file; also: a voice note
//	alice edits: hello again             her newest message; also: alice deletes
//	alice runs: status                   a slash command, as the platform has them; also: alice in ops runs
//	alice presses: opus                  a button or an entry below the newest message that has it
//	robot in ops: {bot} hello            another bot
//	a1 answers: hi there                 what the model says to the next request; also: answers slowly
//	a1 calls: session_status {}          … a tool that it calls first
//	a1 fails: 429                        from now on; fails once: the next time; also: cut after words
//	models recover                       nothing fails any more
//	the platform is away, is back        there is no connection
//	the platform refuses the next: 403   message of the bot
//	the platform loses the next receipt  of a message of the bot
//	the studio closes                    nobody can speak or listen any more
//	the owner approves                   whoever got a pairing code
//	restart                              the bot stops in an orderly way and starts again
//	wait 30s
//	who was asked                        names the models that were, since the last time
//	what was asked                       … with the newest message that they were given, and whether they
//	                                     were told how to have answers spoken
//
// After a step the bot has twenty seconds. A step that begins with "&" is followed by the next one at
// once. Below the steps stand the changes on people's screens, as they came:
//
//	bot: hi                              a new message in private
//	bot in ops: hi                       … in a room
//	bot in the thread of "hello": hi     … in a thread
//	bot (to "hello"): hi                 … that refers to another message
//	bot (quietly): hi                    … that rings nobody's bell
//	bot (for alice alone): hi            … that nobody else sees
//	bot (edits): hi there                a message changed
//	bot (deletes): hi                    … or went away
//
// ⏎ is a line break; [x] is a button or an entry, <x> a file.
package conversations
