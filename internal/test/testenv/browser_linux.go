package testenv

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"
)

// Browser is a headless Chromium with one page.
type Browser struct {
	t    testing.TB
	page *websocket.Conn

	mu   sync.Mutex
	next int
}

// NewBrowser starts a browser, which ends with the test. If Chromium is not installed the test is skipped, or fails
// in continuous integration.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("no chromium on PATH: install the package chromium")
	}
	if err != nil {
		t.Skip("no chromium on PATH: install the package chromium to run this test")
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-port=0", "--remote-allow-origins=*", "--window-size=1400,1600", "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its children too
		_ = cmd.Wait()
	})
	b := &Browser{t: t}
	late := time.AfterFunc(Within(longestWait), func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	b.attachToPage(said)
	late.Stop()
	return b
}

// attachToPage connects to the first page, at the address that the browser prints.
func (b *Browser) attachToPage(said io.Reader) {
	b.t.Helper()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		_, at, found := strings.Cut(lines.Text(), "DevTools listening on ws://")
		if !found {
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, said) }()
		host, _, _ := strings.Cut(at, "/")
		var targets []struct{ Type, WebSocketDebuggerURL string }
		answer, err := (&http.Client{Timeout: pageTime}).Get("http://" + host + "/json/list")
		if err == nil {
			err = json.NewDecoder(answer.Body).Decode(&targets)
			_ = answer.Body.Close()
		}
		for _, target := range targets {
			if target.Type == "page" && b.page == nil {
				b.page, err = websocket.Dial(target.WebSocketDebuggerURL, "", "http://127.0.0.1")
			}
		}
		if err != nil || b.page == nil {
			b.t.Fatalf("connect to the browser at %s: %v", host, err)
		}
		b.t.Cleanup(func() { _ = b.page.Close() })
		return
	}
	b.t.Fatal("the browser has ended before it listened, or was killed as it did not in time")
}

// pageTime bounds how long the browser may take to respond on a busy machine.
const pageTime = 3 * time.Minute

// sendCommand sends a command of the DevTools protocol and decodes its result into into.
func (b *Browser) sendCommand(method string, params map[string]any, into any) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	_ = b.page.SetDeadline(time.Now().Add(pageTime))
	err := websocket.JSON.Send(b.page, map[string]any{"id": b.next, "method": method, "params": params})
	for err == nil {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err = websocket.JSON.Receive(b.page, &answer); err != nil || answer.ID != b.next {
			continue // an event
		}
		if answer.Error != nil && strings.Contains(answer.Error.Message, "navigated or closed") {
			break
		}
		if answer.Error != nil {
			err = fmt.Errorf("%s", answer.Error.Message)
		} else if into != nil {
			err = json.Unmarshal(answer.Result, into)
		}
		break
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// Open navigates the page to a URL.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.sendCommand("Page.navigate", map[string]any{"url": url}, nil)
}

// Eval evaluates an expression in the page and returns its value as text; "" if the page navigated away meanwhile.
func (b *Browser) Eval(expression string) string {
	b.t.Helper()
	var answer struct {
		Result struct{ Value any }
	}
	b.sendCommand("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.Result.Value == nil {
		return ""
	}
	return fmt.Sprint(answer.Result.Value)
}

// Text returns the visible text of the page, including frames.
func (b *Browser) Text() string {
	b.t.Helper()
	return b.Eval(`[document, ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument)].map(d => d?.body?.innerText ?? '').join('\n')`)
}

// Screen sets the width of the page in pixels, and the colour scheme: light or dark.
func (b *Browser) Screen(width int, scheme string) {
	b.t.Helper()
	b.sendCommand("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.sendCommand("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// EnableScripts enables or disables the scripts of pages.
func (b *Browser) EnableScripts(on bool) {
	b.t.Helper()
	b.sendCommand("Emulation.setScriptExecutionDisabled", map[string]any{"value": !on}, nil)
}

// Click clicks the first element that matches a selector.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	text := b.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();
		return JSON.stringify({X: r.x + r.width / 2, Y: r.y + r.height / 2}) })()`, selector))
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		b.t.Fatalf("find %s: %v", selector, err)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.sendCommand("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// Control is an interactive element, as in the accessibility tree.
type Control struct{ Role, Name string }

// Controls returns the links, buttons and inputs of the page as a screen reader sees them.
func (b *Browser) Controls() []Control {
	b.t.Helper()
	type value struct{ Value any }
	var answer struct {
		Nodes []struct {
			Ignored    bool
			Role, Name value
		}
	}
	b.sendCommand("Accessibility.getFullAXTree", nil, &answer)
	var all []Control
	for _, node := range answer.Nodes {
		role, _ := node.Role.Value.(string)
		switch role {
		case "link", "button", "textbox", "searchbox", "spinbutton", "combobox", "checkbox", "radio", "DisclosureTriangle", "region", "image":
			if name, _ := node.Name.Value.(string); !node.Ignored {
				all = append(all, Control{role, strings.TrimSpace(name)})
			}
		}
	}
	return all
}

// PressTab presses the Tab key, for keyboard navigation.
func (b *Browser) PressTab() {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.sendCommand("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
	}
}

// FramesShown reports for each frame of the page, by URL, whether it shows its page: a page may refuse to be framed.
func (b *Browser) FramesShown() map[string]bool {
	b.t.Helper()
	var answer struct {
		FrameTree struct {
			ChildFrames []struct {
				Frame struct{ URL, UnreachableURL string }
			}
		}
	}
	b.sendCommand("Page.getFrameTree", nil, &answer)
	frames := map[string]bool{}
	for _, child := range answer.FrameTree.ChildFrames {
		frames[cmp.Or(child.Frame.UnreachableURL, child.Frame.URL)] = child.Frame.UnreachableURL == ""
	}
	return frames
}

// Picture saves a screenshot of the page.
func (b *Browser) Picture(path string) {
	b.t.Helper()
	var answer struct{ Data string }
	b.sendCommand("Page.captureScreenshot", nil, &answer)
	data, err := base64.StdEncoding.DecodeString(answer.Data)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		b.t.Fatalf("keep a picture: %v", err)
	}
}
