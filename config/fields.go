package config

import (
	"reflect"
	"strings"
	"unicode"
)

// field is one key of a section: what decoding, the schema and `config show` know about it.
type field struct {
	key      string
	index    []int
	typ      reflect.Type
	words    []string // the only values a string may have; nil = any
	required bool
}

// fieldsOf returns the keys of a struct type in their order, those of inline structs included.
//
// The tags are `yaml:"name"`, `enum:"a|b"` and `required:"true"`; a field without a yaml tag goes
// by its own name with a lower-case first letter, "-" hides it.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		inline := strings.Contains(","+opts+",", ",inline,") || (f.Anonymous && name == "")
		if inner := deref(f.Type); inline && inner.Kind() == reflect.Struct && f.Type.Kind() == reflect.Struct {
			for _, g := range fieldsOf(inner) {
				g.index = append([]int{i}, g.index...)
				out = append(out, g)
			}
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			r := []rune(f.Name)
			r[0] = unicode.ToLower(r[0])
			name = string(r)
		}
		g := field{key: name, index: []int{i}, typ: f.Type, required: f.Tag.Get("required") == "true"}
		if words := f.Tag.Get("enum"); words != "" {
			g.words = strings.Split(words, "|")
		}
		out = append(out, g)
	}
	return out
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
