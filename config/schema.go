package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"

	"understudy/internal/secret"
)

// schemaURL is the dialect the schema is written in.
const schemaURL = "https://json-schema.org/draft/2020-12/schema"

// object is one JSON Schema.
type object map[string]any

// Schema returns the JSON Schema of the configuration file, for editors.
func Schema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[File]())
	s["$schema"], s["title"] = schemaURL, "Understudy configuration"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return append(out, '\n'), nil
}

func schemaOf(t reflect.Type) object {
	t = deref(t)
	switch t {
	case reflect.TypeFor[secret.String]():
		return object{"anyOf": []object{
			{"type": "string", "description": "${NAME}, file:/path, or the secret itself"},
			sectionSchema(reflect.TypeFor[secretRef]()),
		}}
	case durationType:
		return object{"type": "string", "description": "a duration such as 30s, 5m or 2h"}
	case reflect.TypeFor[Minutes]():
		return object{"type": []string{"string", "number"}, "description": "a duration such as 30m; a bare number counts minutes"}
	case reflect.TypeFor[ModelChoice]():
		return object{"anyOf": []object{{"type": "string", "description": "provider/model or an alias"}, sectionSchema(t)}}
	}
	ptr := reflect.PointerTo(t)
	switch {
	case ptr.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return object{"type": []string{"string", "number", "boolean"}}
	case ptr.Implements(reflect.TypeFor[yaml.BytesUnmarshaler]()), ptr.Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]()):
		return object{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return sectionSchema(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return object{"type": []string{"string", "integer"}}
	case reflect.Bool:
		return orVariable("boolean")
	case reflect.Float32, reflect.Float64:
		return orVariable("number")
	}
	return orVariable("integer")
}

// orVariable allows ${NAME} in place of a value of type t.
func orVariable(t string) object {
	return object{"anyOf": []object{{"type": t}, {"type": "string", "pattern": `^\$\{[A-Z_][A-Z0-9_]*\}$`}}}
}

func sectionSchema(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		s := schemaOf(f.typ)
		if f.words != nil {
			s = object{"enum": f.words}
		}
		properties[f.key] = s
		if f.required {
			required = append(required, f.key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
