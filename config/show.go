package config

import (
	"encoding"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"understudy/internal/secret"
)

// Redacted returns the configuration in effect as YAML, defaults included and every secret
// replaced by ***.
func (c *Config) Redacted() ([]byte, error) {
	out, err := yaml.Marshal(shown(reflect.ValueOf(withStanding(c.File))))
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out, nil
}

// withStanding fills in what counts although the file does not say it, and costs money or ends turns.
func withStanding(f File) File {
	d := &f.Agents.Defaults
	if d.TimeoutSeconds == nil {
		seconds := int(defaultTurnTimeout / time.Second)
		d.TimeoutSeconds = &seconds
	}
	if d.Heartbeat.Every == nil {
		every := Minutes(defaultHeartbeatEvery)
		d.Heartbeat.Every = &every
	}
	return f
}

// shown turns a section into what is printed of it; nil = nothing.
func shown(v reflect.Value) any {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case secret.String:
		if x.IsZero() {
			return nil
		}
		return secret.Mask
	case time.Duration:
		return x.String()
	case Minutes:
		return time.Duration(x).String()
	case ModelChoice:
		if x.Fallbacks == nil {
			return orNil(x.Primary)
		}
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err != nil {
			return nil
		}
		return orNil(string(text))
	}
	switch v.Kind() {
	case reflect.Struct:
		return shownStruct(v)
	case reflect.Map:
		return shownMap(v)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, shown(v.Index(i)))
		}
		return list
	case reflect.String:
		return orNil(withoutUser(v.String()))
	}
	return v.Interface()
}

func shownStruct(v reflect.Value) any {
	var out yaml.MapSlice
	for _, f := range fieldsOf(v.Type()) {
		fv := v.FieldByIndex(f.index)
		item := shown(fv)
		zeroNumber := fv.Kind() != reflect.Pointer && fv.Kind() != reflect.Bool && fv.CanInterface() && fv.IsZero()
		if item == nil || zeroNumber {
			continue
		}
		out = append(out, yaml.MapItem{Key: f.key, Value: item})
	}
	if out == nil {
		return nil
	}
	return out
}

func shownMap(v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out := yaml.MapSlice{}
	for _, k := range keys {
		item := shown(v.MapIndex(k))
		if item == nil {
			item = yaml.MapSlice{}
		}
		out = append(out, yaml.MapItem{Key: k.String(), Value: item})
	}
	return out
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// withoutUser hides the user information of a URL.
func withoutUser(s string) string {
	if !strings.Contains(s, "://") || !strings.Contains(s, "@") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	u.User = nil
	return strings.Replace(u.String(), "://", "://"+secret.Mask+"@", 1)
}
