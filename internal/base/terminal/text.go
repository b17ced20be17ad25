// Package terminal writes for people at a terminal: texts that can neither control it nor break its lines, tables
// that fit it, and JSON.
package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/interpreter/source"
)

// Time formats a time in UTC: 2026-11-22 23:00:14 UTC.
func Time(at time.Time) string { return at.UTC().Format(time.DateTime + " UTC") }

// ClockText formats a time of day in UTC, with the date if it is not today.
func ClockText(at, now time.Time) string {
	if at.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		return Time(at)
	}
	return at.UTC().Format(time.TimeOnly + " UTC")
}

// DeadlineText formats until when somebody has time, for sentences: Mon 30 Nov, 09:00 UTC.
func DeadlineText(at time.Time) string { return at.UTC().Format("Mon 2 Jan, 15:04 UTC") }

// Ago formats how long ago a time was, for lists: 4m ago.
func Ago(at, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(at); {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	default:
		return fmt.Sprintf("%dd ago", d/day)
	}
}

// OneLine replaces line breaks and tabs by spaces. It keeps runs of spaces, which align columns.
func OneLine(line string) string {
	return EscapeInvisible(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(line))
}

// SecondsText formats a number of seconds like Duration.
func SecondsText(n float64) string {
	return Duration(time.Duration(n * float64(time.Second)).Round(time.Millisecond))
}

// Duration formats a duration in at most two units.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Shorten joins the lines of a text and cuts it to a number of characters.
func Shorten(text string, most int) string {
	text = EscapeInvisible(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) > most {
		return source.CutText(text, most-1)
	}
	return text
}

// NumberText formats a number; "" for 0.
func NumberText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// CellText returns a text from data for a table cell, cut to a width.
func CellText(content string, width int) string { return text.Snip(OneLine(content), width, "…") }

// HelpColumns is the maximum width of help, however wide the terminal is.
const HelpColumns = 80

// Paragraphs wraps the paragraphs of a text at a width. Paragraphs that begin with a space are left unchanged.
func Paragraphs(text string, width int) string {
	filled := strings.Split(text, "\n\n")
	for i, paragraph := range filled {
		if !strings.HasPrefix(paragraph, " ") {
			filled[i] = strings.Join(WrapText(strings.Join(strings.Fields(paragraph), " "), width), "\n")
		}
	}
	return strings.Join(filled, "\n\n")
}

// WriteWrapped writes a line, wrapped if it is too long.
func WriteWrapped(b *strings.Builder, said string, width int) {
	for _, line := range WrapText(said, width) {
		b.WriteString(line + "\n")
	}
}

// HangingLine returns a line after a margin, wrapped with further indented continuation lines.
func HangingLine(margin, said string, width int) string {
	lines := WrapText(OneLine(said), max(width-len(margin)-2, 20))
	return margin + strings.Join(lines, "\n"+margin+"  ") + "\n"
}

// WrapText wraps a text between words at a width, and returns its lines.
func WrapText(said string, width int) (lines []string) {
	if width >= Unbounded/2 { // also behind a margin
		return strings.Split(strings.TrimRight(said, " \n"), "\n")
	}
	for line := range strings.Lines(text.WrapSoft(said, width)) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

// ShellWord quotes a text as one word for a shell, if needed.
func ShellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Count returns a number with its noun, in the plural unless it is 1.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
