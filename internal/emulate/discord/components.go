package discord

import "unicode/utf8"

// Types of components.
const (
	ActionRow  = 1
	ButtonType = 2
	SelectType = 3
)

const (
	mostRows      = 5
	mostButtons   = 5
	mostOptions   = 25
	longestID     = 100
	longestLabel  = 80
	longestOption = 100
)

// Component is a row, a button or a selection below a message.
type Component struct {
	Type        int         `json:"type"`
	Components  []Component `json:"components,omitempty"`
	CustomID    string      `json:"custom_id,omitempty"`
	Label       string      `json:"label,omitempty"`
	Style       int         `json:"style,omitempty"`
	Disabled    bool        `json:"disabled,omitempty"`
	Placeholder string      `json:"placeholder,omitempty"`
	Options     []Option    `json:"options,omitempty"`
}

// Option is one choice of a selection.
type Option struct {
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Default     bool   `json:"default,omitempty"`
}

// checkComponents is as strict as the real server.
func checkComponents(rows []Component) *refusal {
	bad := func(code, text string) *refusal { return invalid("components", code, text) }
	if len(rows) > mostRows {
		return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if row.Type != ActionRow || len(row.Components) == 0 || len(row.Components) > mostButtons {
			return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
		for _, c := range row.Components {
			if c.CustomID == "" || utf8.RuneCountInString(c.CustomID) > longestID {
				return bad("BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
			}
			if seen[c.CustomID] {
				return bad("COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
			}
			seen[c.CustomID] = true
			switch {
			case c.Type == ButtonType:
				if n := utf8.RuneCountInString(c.Label); n == 0 || n > longestLabel || c.Style < 1 || c.Style > 4 {
					return bad("BUTTON_COMPONENT_INVALID", "A button must have a label of at most 80 characters and a style.")
				}
			case c.Type != SelectType || len(row.Components) > 1:
				return bad("COMPONENT_TYPE_INVALID", "The specified component type is invalid in an action row")
			default:
				if r := checkSelect(c); r != nil {
					return r
				}
			}
		}
	}
	return nil
}

func checkSelect(c Component) *refusal {
	if len(c.Options) == 0 || len(c.Options) > mostOptions || utf8.RuneCountInString(c.Placeholder) > 150 {
		return invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 25 in length.")
	}
	values, chosen := map[string]bool{}, 0
	for _, o := range c.Options {
		if o.Default {
			chosen++
		}
		if n := utf8.RuneCountInString(o.Label); n == 0 || n > longestOption || o.Value == "" || len(o.Value) > longestOption || values[o.Value] {
			return invalid("components", "SELECT_COMPONENT_OPTION_INVALID", "An option must have a label of at most 100 characters and a value of its own.")
		}
		values[o.Value] = true
	}
	if chosen > 1 {
		return invalid("components", "SELECT_COMPONENT_TOO_MANY_DEFAULT_VALUES", "Too many default values")
	}
	return nil
}
