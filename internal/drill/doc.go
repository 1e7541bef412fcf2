// Package drill plays conversations with a whole bot: the real app with its databases, the emulated
// Telegram as its channel and emulated model APIs behind the real SDKs.
//
// A World is that stage. It can be driven by hand, or by a script (Play), which is meant to be read
// as a specification. A script is a txtar archive: prose, then a section bot.yaml with what matters
// of the configuration, a section conversation, and texts that either names in braces.
//
// In a conversation each line is a step:
//
//	# a remark
//	alice: hello                               a person writes to the bot in private
//	alice in ops: @understudy_bot hello        … in a group
//	alice in forum/7: hello                    … in a topic
//	alpha/a1 answers: hi there                 what the model says to the next request
//	alpha/a1 answers slowly: hi there          … in pieces of twelve letters, one a second
//	alpha/a1 calls: session_status {}          … it calls a tool
//	alpha/a1 fails: 429 retry after 20m        from now on; also: hang, reset, empty, overflow
//	alpha/a1 fails once: cut after Half an     … the next request only; also: hang after, reset after
//	alpha/a1 fails the second time: 503        the next request works, the one after it does not
//	models recover                             nothing fails any more
//	telegram drops: sendMessage                does the next one, then cuts the connection
//	telegram holds: sendMessage                … does it, but the bot never hears of it
//	telegram refuses: sendMessage 403          the next one
//	wait 30s                                   time passes
//	config: broken.yaml                        the configuration is replaced by that section
//	stop, start, restart, kill                 of the bot's process; a kill loses what was not stored
//
// and these say what must be seen. Lines in a row are compared with all that is new on people's
// screens, which may take up to twenty seconds to come:
//
//	bot: hi there                              a new message in alice's private chat
//	bot in forum/7: hi there                   … elsewhere
//	bot (quietly): …                           a message that rings nobody's bell
//	bot (to "hello"): …                        a message that refers to another
//	bot (edits): …                             a message changed
//	bot (deletes): …                           a message went away
//	   | second line                           continues the line above
//	nothing                                    nothing is new, now
//	asked: alpha/a1 beta/b1                    the requests that models got since the last such line; or nobody
//
// A person who has no other line is called alice (the owner), bob or carol. {*} in an expected text
// stands for anything.
package drill
