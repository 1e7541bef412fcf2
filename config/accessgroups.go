package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// accessGroupPrefix stands before the name of an access group in an allowlist.
const accessGroupPrefix = "accessGroup:"

// resolveAccessGroups checks the groups. A member is written as channel:id, so that a list of one
// channel takes the ids of that channel only.
func (c *Config) resolveAccessGroups(d *decoder) {
	for _, name := range slices.Sorted(maps.Keys(c.AccessGroups)) {
		at := join("accessGroups", name)
		if !validAgentID(name) {
			d.fail(at, fmt.Sprintf("%s cannot be the name of a group", quote(name)), "lower-case letters, digits, - and _, at most 64")
		}
		for i, member := range c.AccessGroups[name] {
			channel, id, ok := strings.Cut(member, ":")
			if !ok || id == "" || id == "*" || !slices.Contains(c.channelNames(), channel) {
				d.fail(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("%s is not of the form channel:id", quote(member)), "for example telegram:123456789")
			}
		}
	}
}

// members returns the ids of a group on one channel.
func (c *Config) members(name, channel string) ([]string, bool) {
	list, known := c.AccessGroups[name]
	var ids []string
	for _, m := range list {
		if id, ok := strings.CutPrefix(m, channel+":"); ok {
			ids = append(ids, id)
		}
	}
	return ids, known
}

// expandGroups returns a list with access groups replaced by their members on a channel; what is not
// there is a problem.
func (c *Config) expandGroups(d *decoder, list []string, channel, at string) []string {
	if !slices.ContainsFunc(list, func(id string) bool { return strings.HasPrefix(id, accessGroupPrefix) }) {
		return list
	}
	out := []string{} // an allowlist that has become empty is not one that is missing
	for i, id := range list {
		name, isGroup := strings.CutPrefix(id, accessGroupPrefix)
		if !isGroup {
			out = append(out, id)
			continue
		}
		ids, known := c.members(name, channel)
		if !known {
			d.fail(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("there is no access group %s", quote(name)), hintFor(name, slices.Sorted(maps.Keys(c.AccessGroups))))
		}
		out = append(out, ids...)
	}
	return out
}

// expandAll is expandGroups for every list in a section, at any depth. What is changed is copied
// first: accounts share the lists of the block they start from.
func (c *Config) expandAll(d *decoder, v reflect.Value, channel, at string) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			c.expandAll(d, v.FieldByIndex(f.index), channel, join(at, f.key))
		}
	case reflect.Slice:
		if list, ok := v.Interface().([]string); ok {
			v.Set(reflect.ValueOf(c.expandGroups(d, list, channel, at)))
		}
	case reflect.Map:
		if v.IsNil() || v.Type().Key().Kind() != reflect.String {
			return
		}
		fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, k := range v.MapKeys() {
			item := reflect.New(v.Type().Elem()).Elem()
			item.Set(v.MapIndex(k))
			c.expandAll(d, item, channel, join(at, k.String()))
			fresh.SetMapIndex(k, item)
		}
		v.Set(fresh)
	}
}
