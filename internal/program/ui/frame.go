package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/program/serve"
	"reprise/interpreter"
)

var (
	//go:embed *.html
	pages embed.FS
	//go:embed ui.css
	styleText string
	//go:embed ui.js
	script string
)

// style is the style sheet, including the colours of statuses.
var style = statusColours() + styleText

// templates are the pages by name, each with the frame around it. They are parsed when the first page is shown: most commands show none.
var templates = sync.OnceValue(func() map[string]*template.Template {
	return parsePages("runs", "run", "step", "events", "timeline", "log", "confirm", "confirm_answer", "inbox", "failed", "schedules", "playbooks", "playbook", "problem", "signin")
})

func parsePages(names ...string) map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.New(name).Funcs(functions).ParseFS(pages, "frame.html", "parts.html", "rows.html", name+".html"))
	}
	return all
}

var functions = template.FuncMap{
	"style":    func() template.CSS { return template.CSS(style) }, //nolint:gosec // ours
	"script":   func() template.JS { return template.JS(script) },  //nolint:gosec // ours
	"utc":      func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
	"rfc":      func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
	"word":     interpreter.Status.DisplayWord,
	"run":      runPath,
	"title":    render.RunTitle,
	"step":     stepPath,
	"readable": serve.ReadableText,
	"cut":      func(most int, text string) string { return terminal.Shorten(text, most) },
	"count":    terminal.Count,
	"button":   buttonText,
	"sentence": statusSentence,
	"middle":   func(most int, text string) string { return terminal.ShortenMiddle(terminal.OneLine(text), most) },
	"segment":  url.PathEscape,
	"labelled": func(command string) [2]string {
		label, rest, found := strings.Cut(command, ": ")
		if !found {
			return [2]string{"", command}
		}
		return [2]string{label + ": ", rest}
	},
}

// statusColours returns the CSS for the colours of statuses, in light and dark mode.
func statusColours() string {
	var light, dark, each strings.Builder
	for _, info := range interpreter.Statuses() {
		fmt.Fprintf(&light, "--%s:%s;", info.Status, info.Colour.Ink)
		fmt.Fprintf(&dark, "--%s:%s;", info.Status, info.Colour.DarkInk)
		fmt.Fprintf(&each, ".of-%s{--of:var(--%s)}", info.Status, info.Status)
	}
	return ":root{" + light.String() + "}@media(prefers-color-scheme:dark){:root{" + dark.String() + "}}" + each.String() + "\n"
}

func runPath(id string) string { return "/runs/" + url.PathEscape(id) }

func stepPath(id, step string) string { return runPath(id) + "/steps/" + url.PathEscape(step) }

// frame is what all pages have in common.
type frame struct {
	Title string
	// Section is the navigation item of the page.
	Section string
	Person  Person
	Token   string // of forms
	Flash   *flash
	Live    bool // it changes by itself
	At      time.Time
	Books   bool // there is a folder of playbooks
	Docs    bool // the documents are here too
	// Temporal is set if this person can also open Temporal's own UI here.
	Temporal bool
	// Away is shown when the server of the pages does not respond: how to start it.
	Away    string
	Content any
}

// link is an item of the navigation.
type link struct{ Name, Path string }

// Sections returns the items of the navigation.
func (f frame) Sections() []link {
	all := []link{{"Runs", "/"}, {"Inbox", "/inbox"}, {"Failed iterations", "/failed"}, {"Schedules", "/schedules"}}
	if f.Books {
		all = append(all, link{"Playbooks", "/playbooks"})
	}
	if f.Docs {
		all = append(all, link{"Docs", "/docs/"})
	}
	if f.Temporal {
		all = append(all, link{"Temporal", temporalPath})
	}
	return all
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var contentPolicy = "default-src 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script) +
	"; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setSecurity sets headers that restrict a page to reading, replacing its own content and posting its forms.
func setSecurity(header http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": contentPolicy, "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control": "no-store",
	} {
		header.Set(name, value)
	}
}
