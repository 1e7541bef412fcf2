package telegram

import (
	"context"
	"errors"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
)

const (
	mostCommands       = 100
	longestCommand     = 32
	longestDescription = 256 // characters
)

// commandScopes are where the menu is shown.
var commandScopes = [...]string{"all_private_chats", "all_group_chats"}

// RegisterCommands implements channels.CommandRegistrar for private chats and groups. Commands
// whose names Telegram cannot show are left out; people can type them all the same. With
// `commands.native: false` it does nothing.
func (b *Bot) RegisterCommands(ctx context.Context, cmds []channels.CommandInfo) error {
	if !*b.cfg.Commands.Native {
		return nil
	}
	menu := commandMenu(cmds)
	for _, scope := range commandScopes {
		err := b.setCommands(ctx, scope, menu)
		var e *callError
		if errors.As(err, &e) && strings.Contains(e.description, "BOT_COMMANDS_TOO_MUCH") {
			menu = menu[:len(menu)/2]
			err = b.setCommands(ctx, scope, menu)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Bot) setCommands(ctx context.Context, scope string, menu []tgbotapi.BotCommand) error {
	_, err := b.api.call(ctx, b.api.calls, "setMyCommands", tgbotapi.Params{
		"commands": jsonText(menu),
		"scope":    jsonText(map[string]string{"type": scope}),
	})
	return err
}

func commandMenu(cmds []channels.CommandInfo) []tgbotapi.BotCommand {
	menu := []tgbotapi.BotCommand{}
	for _, c := range cmds {
		name := strings.ReplaceAll(strings.ToLower(c.Name), "-", "_")
		if name == "" || len(name) > longestCommand || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			continue
		}
		description := []rune(strings.TrimSpace(c.Description))
		if len(description) == 0 {
			description = []rune(name)
		}
		menu = append(menu, tgbotapi.BotCommand{Command: name, Description: string(description[:min(len(description), longestDescription)])})
		if len(menu) == mostCommands {
			break
		}
	}
	return menu
}
