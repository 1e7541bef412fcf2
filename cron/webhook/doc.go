// Package webhook posts results of tasks to URLs that people typed into a chat (spec/chat.md §5.6, §8
// S9). Such a URL must not become a way into the network behind the bot: every address that a name
// leads to is looked at before a connection is made, the connection goes to the very address that was
// looked at, and all of that is done again for each redirect.
package webhook
