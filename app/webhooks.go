package app

import (
	"errors"
	"net/http"

	"understudy/channels"
)

// listenOff is the value of Options.Listen that opens no listener.
const listenOff = "off"

var errNoListener = errors.New("its platform calls it over HTTP, but the listener is off (--listen off)")

// hook returns the webhook of an adapter, nil = it does not listen.
func hook(x channels.Adapter) channels.Webhook {
	if h, ok := x.(channels.Webhook); ok && h.Path() != "" {
		return h
	}
	return nil
}

// callable reports why an account would hear nothing.
func (a *App) callable(x channels.Adapter) error {
	if hook(x) != nil && a.opts.Listen == listenOff {
		return errNoListener
	}
	return nil
}

// mountWebhooks serves what the platforms call.
func (a *App) mountWebhooks() {
	if a.gateway == nil {
		return
	}
	handlers := map[string]http.Handler{}
	for _, x := range a.roster.all() {
		if h := hook(x.adapter); h != nil {
			handlers[h.Path()] = h
		}
	}
	a.gateway.SetWebhooks(handlers)
}
