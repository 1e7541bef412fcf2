package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	errNotScalar = errors.New("not a single value")
)

// scalarText returns a single value as it was written, without quotes.
func scalarText(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	}
	return "", errNotScalar
}

// text decodes types that read themselves. It reports whether v is one.
func (d *decoder) text(n ast.Node, v reflect.Value, path string) bool {
	switch own := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		s, err := scalarText(n)
		if err != nil {
			d.problem(n, path, "here a single value is expected, not "+kindOf(n), "")
			return true
		}
		if s, ok := d.expand(n, s, path); ok {
			if err := own.UnmarshalText([]byte(s)); err != nil {
				d.problem(n, path, err.Error(), "")
			}
		}
		return true
	case yaml.NodeUnmarshaler:
		d.unmarshal(n, own.UnmarshalYAML(n), path)
		return true
	case yaml.InterfaceUnmarshaler, yaml.BytesUnmarshaler:
		d.unmarshal(n, yaml.NodeToValue(n, own, yaml.Strict()), path)
		return true
	}
	return false
}

func (d *decoder) unmarshal(n ast.Node, err error, path string) {
	if err == nil {
		return
	}
	var located yaml.Error
	if errors.As(err, &located) { // its Error method would quote the file
		err = errors.New(located.GetMessage())
	}
	d.problem(n, path, err.Error(), "")
}

// scalar decodes one value.
func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	if v.Type() == durationType {
		if dur, ok := d.duration(n, path, 0); ok {
			v.SetInt(int64(dur))
		}
		return
	}
	s, err := scalarText(n)
	if err != nil {
		d.problem(n, path, fmt.Sprintf("here %s is expected, not %s", wanted(v.Kind()), kindOf(n)), "")
		return
	}
	if v.Kind() == reflect.String {
		if t := n.Type(); t != ast.StringType && t != ast.LiteralType && t != ast.IntegerType {
			d.problem(n, path, fmt.Sprintf("here a text is expected, not %s", kindOf(n)), `write it in quotes: "`+clip(s)+`"`)
			return
		}
		if s, ok := d.expand(n, s, path); ok {
			v.SetString(s)
		}
		return
	}
	s, ok := d.expand(n, s, path)
	if ok && !setNumber(v, s) {
		d.problem(n, path, fmt.Sprintf("%s is not %s", quote(s), wanted(v.Kind())), "")
	}
}

// setNumber reads a boolean or a number into v. It reports false when s is none that fits.
func setNumber(v reflect.Value, s string) bool {
	digits := strings.ReplaceAll(s, "_", "")
	var err error
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s == "true")
		return s == "true" || s == "false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var i int64
		i, err = strconv.ParseInt(digits, 0, v.Type().Bits())
		v.SetInt(i)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(digits, 0, v.Type().Bits())
		v.SetUint(u)
	case reflect.Float32, reflect.Float64:
		var f float64
		f, err = strconv.ParseFloat(digits, 64)
		v.SetFloat(f)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	default:
		return false
	}
	return err == nil
}

// duration reads a span such as 30s, 5m, 1h30m or 2d. A bare number counts units of unit; with
// unit 0 it is an error, except 0 itself.
func (d *decoder) duration(n ast.Node, path string, unit time.Duration) (time.Duration, bool) {
	s, err := scalarText(n)
	if err != nil {
		d.problem(n, path, "here a duration such as 30s is expected, not "+kindOf(n), "")
		return 0, false
	}
	s, ok := d.expand(n, s, path)
	if !ok {
		return 0, false
	}
	dur, err := parseDuration(s, unit)
	if err != nil {
		d.problem(n, path, err.Error(), "write a number and a unit, for example 30s, 5m or 2h")
		return 0, false
	}
	return dur, true
}

func parseDuration(s string, unit time.Duration) (time.Duration, error) {
	s = strings.TrimSpace(s)
	bad := fmt.Errorf("%s is not a duration", quote(s))
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		span := f * float64(unit)
		if (unit == 0 && f != 0) || math.IsNaN(f) || f < 0 || span > math.MaxInt64/2 {
			return 0, bad
		}
		return time.Duration(span), nil
	}
	if days, rest, ok := strings.Cut(s, "d"); ok {
		f, err := strconv.ParseFloat(days, 64)
		if err != nil || math.IsNaN(f) || f < 0 || f > 36500 {
			return 0, bad
		}
		total := time.Duration(f * float64(24*time.Hour))
		if rest == "" {
			return total, nil
		}
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 {
			return 0, bad
		}
		return total + more, nil
	}
	dur, err := time.ParseDuration(s)
	if err != nil || dur < 0 {
		return 0, bad
	}
	return dur, nil
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of 0 or more"
	}
	return "a whole number"
}

// clip bounds what a message repeats of the file.
func clip(s string) string {
	const most = 40
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most]) + "…"
}

func quote(s string) string { return strconv.Quote(clip(s)) }
