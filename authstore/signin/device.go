package signin

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"understudy/authstore"
)

// Bounds of the device flow, whatever the server says.
const (
	shortestPoll  = time.Second
	defaultPoll   = 5 * time.Second
	longestPoll   = time.Minute
	longestDevice = 30 * time.Minute
)

// Code is what a person types at the page of a device flow.
type Code struct {
	Page string // where to type it
	User string // what to type
	// Direct is a page on which the code stands already; "" = there is none.
	Direct string
}

// deviceAnswer is the answer of a device endpoint (RFC 8628 §3.2; verification_url is Google's).
type deviceAnswer struct {
	Device   string  `json:"device_code"`
	User     string  `json:"user_code"`
	Page     string  `json:"verification_uri"`
	PageAlso string  `json:"verification_url"`
	Direct   string  `json:"verification_uri_complete"`
	Expires  float64 `json:"expires_in"`
	Interval float64 `json:"interval"`
}

// Device shows a code to type at a page and waits until that was done.
func (c *Client) Device(ctx context.Context, show func(Code)) (Account, error) {
	if c.provider.DeviceURL == "" {
		return Account{}, ErrNoFlow
	}
	d, err := c.device(ctx)
	if err != nil {
		return Account{}, err
	}
	show(Code{Page: d.Page, User: d.User, Direct: d.Direct})
	wait := seconds(d.Interval, defaultPoll, shortestPoll, longestPoll)
	ctx, cancel := c.clock.WithTimeout(ctx, seconds(d.Expires, longestDevice, time.Minute, longestDevice), ErrExpired)
	defer cancel()
	for {
		if err := c.clock.Sleep(ctx, wait); err != nil {
			return Account{}, err
		}
		a, err := c.redeem(ctx, url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {d.Device},
		})
		var refused *authstore.RefreshError
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return Account{}, context.Cause(ctx)
		case !errors.As(err, &refused) || refused.Status >= 500:
			wait = min(wait*2, longestPoll) // the line or the server is down: RFC 8628 §3.5
		case refused.Code == "slow_down":
			wait = min(wait+5*time.Second, longestPoll)
		case refused.Code == "authorization_pending":
		case refused.Code == "access_denied":
			return Account{}, ErrDenied
		case refused.Code == "expired_token":
			return Account{}, ErrExpired
		default:
			return Account{}, err
		}
	}
}

func (c *Client) device(ctx context.Context) (deviceAnswer, error) {
	form := url.Values{"client_id": {c.provider.ClientID}}
	if len(c.provider.Scopes) > 0 {
		form.Set("scope", strings.Join(c.provider.Scopes, " "))
	}
	if c.provider.Audience != "" {
		form.Set("audience", c.provider.Audience)
	}
	ctx, cancel := c.clock.WithTimeout(ctx, answerWithin, errSilent)
	defer cancel()
	status, body, err := c.oauth.Post(ctx, c.provider.DeviceURL, form)
	if err != nil && ctx.Err() != nil {
		return deviceAnswer{}, context.Cause(ctx)
	}
	if err != nil {
		return deviceAnswer{}, err
	}
	var d deviceAnswer
	if status != 200 || json.Unmarshal(body, &d) != nil {
		return deviceAnswer{}, &authstore.RefreshError{Status: status, Code: "no_device_code"}
	}
	if d.Page == "" {
		d.Page = d.PageAlso
	}
	if !page(d.Direct) {
		d.Direct = ""
	}
	if d.Device == "" || !showable(d.User) || !page(d.Page) {
		return deviceAnswer{}, &authstore.RefreshError{Status: status, Code: "no_device_code"}
	}
	return d, nil
}

// page reports whether an address may be shown to a person as a page to open.
func page(address string) bool { return showable(address) && authstore.CheckAddress(address) == nil }

// seconds bounds a server's number of seconds.
func seconds(n float64, otherwise, least, most time.Duration) time.Duration {
	if !(n > 0) {
		return otherwise
	}
	if n > most.Seconds() {
		return most
	}
	return max(time.Duration(n*float64(time.Second)), least)
}
