package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// RPCParams reads the parameters of a call into a T, a struct of texts, numbers, switches, lists and
// structs of these, and pointers to them for what may be left out and is told from empty. Names are
// those of the json tags; a field tagged `rpc:"required"` must be there. Anything else (an unknown or
// repeated name, another type, null) is an *RPCError that names its path.
func RPCParams[T any](raw json.RawMessage) (T, error) {
	var in T
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if bad := readParam(raw, reflect.ValueOf(&in).Elem(), "params"); bad != nil {
		return in, bad
	}
	return in, nil
}

// BadParam is the error about one parameter, "session" or "queue.mode". text says what is wrong with it.
func BadParam(name, text string) *RPCError { return badParam("params."+name, text) }

func badParam(path, text string) *RPCError {
	return &RPCError{Code: RPCInvalidParams, Message: path + ": " + text, Data: map[string]string{"path": path}}
}

func readParam(raw json.RawMessage, into reflect.Value, path string) *RPCError {
	if isNull(raw) {
		return badParam(path, "must not be null")
	}
	switch into.Kind() {
	case reflect.Pointer:
		v := reflect.New(into.Type().Elem())
		if bad := readParam(raw, v.Elem(), path); bad != nil {
			return bad
		}
		into.Set(v)
		return nil
	case reflect.Struct:
		return readFields(raw, into, path)
	case reflect.Slice:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return badParam(path, "must be a list")
		}
		v := reflect.MakeSlice(into.Type(), len(list), len(list))
		for i, item := range list {
			if bad := readParam(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); bad != nil {
				return bad
			}
		}
		into.Set(v)
		return nil
	}
	if json.Unmarshal(raw, into.Addr().Interface()) != nil {
		return badParam(path, "must be "+kindWord(into.Kind()))
	}
	return nil
}

func kindWord(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// maxNameShown bounds what of a wrong name is repeated, in bytes.
const maxNameShown = 64

// readFields reads an object. It reads token by token, because encoding/json takes names in any case
// and several times.
func readFields(raw json.RawMessage, into reflect.Value, path string) *RPCError {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return badParam(path, "must be an object")
	}
	fields, names := fieldsByName(into.Type())
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return badParam(path, "must be an object")
		}
		at := path + "." + strings.ToValidUTF8(name[:min(len(name), maxNameShown)], "")
		i, known := fields[name]
		switch {
		case !known && len(names) == 0:
			return badParam(at, "there is no such parameter")
		case !known:
			return badParam(at, "there is no such parameter; there is: "+strings.Join(names, ", "))
		case seen[name]:
			return badParam(at, "stands there twice")
		}
		seen[name] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return badParam(at, "cannot be read")
		}
		if bad := readParam(value, into.Field(i), at); bad != nil {
			return bad
		}
	}
	for _, name := range names {
		if into.Type().Field(fields[name]).Tag.Get("rpc") == "required" && !seen[name] {
			return badParam(path+"."+name, "is missing")
		}
	}
	return nil
}

func fieldsByName(t reflect.Type) (byName map[string]int, names []string) {
	byName = map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		byName[name] = i
		names = append(names, name)
	}
	slices.Sort(names)
	return byName, names
}
