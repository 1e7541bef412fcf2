// Package chat holds the words of the people side: addresses, inbound and outbound messages, and
// the classes that decide how a thing may be delivered. Plain types only; it knows no platform and
// no model.
package chat
