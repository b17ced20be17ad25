package ui_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// figures asks with a table that is wider than a phone.
const figures = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: figures}
workload: {total: "1 234 567,89 EUR"}
workflow:
  - step: ask
    tool: approval
    timeout: 14h
    on_timeout: reject
    message: |
      **Book** the invoices of {{ total }}?

      | supplier | invoice | net amount | VAT | total | due | account |
      |---|---|---:|---:|---:|---|---|
      | Northern Lighting | 2026-10-0815 | 1,037,452.00 | 197,115.88 | 1,234,567.88 | 2026-12-01 | 4711 |
`

// TestApprovalOnAPhone: figures stay whole, each row of a table is a block of labelled lines within the screen, the title is rendered,
// and what happens without an answer stands above the buttons.
func TestApprovalOnAPhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start("figures-"+w.queue, figures, nil)
	of := "/inbox?run=" + url.QueryEscape(id)
	body := w.shows(of, "If nobody answers by ")
	require.Regexp(t, `If nobody answers by \w{3} \d{1,2} \w{3}, \d\d:\d\d UTC \(in 1[34]h\): rejected\.</p>\s*<span class="buttons">`, body)
	require.Contains(t, between(body, "<h2", "</h2>"), "Book the invoices of 1\u00a0234\u00a0567,89\u00a0EUR?")
	w.shows("/runs/"+id, "Book the invoices of")
	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, patience, 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}
	until(`document.title === 'Runs – Reprise'`)
	browser.Open(w.url + of)
	until(fmt.Sprintf(`location.pathname + location.search === %q && !!document.querySelector('.message table')`, of))
	browser.Screen(320, "light")
	require.Equal(t, "true", browser.Eval(`(() => {
		const tail = document.createElement('pre'), text = document.createRange();
		tail.className = 'panel body tail';
		tail.textContent = 'line\n'.repeat(200) + 'the cause';
		document.querySelector('main').append(tail);
		text.setStart(tail.firstChild, tail.textContent.length - 1);
		text.setEnd(tail.firstChild, tail.textContent.length);
		const end = text.getBoundingClientRect().bottom, box = tail.getBoundingClientRect();
		tail.remove();
		return box.top < end && end <= box.bottom })()`), "the end of a long body shows its last line")
	for _, width := range []int{320, 390} {
		browser.Screen(width, "light")
		require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "the page is as wide as the phone")
		require.Equal(t, "supplier: |invoice: |net amount: |VAT: |total: |due: |account: ", browser.Eval(`[...document.querySelectorAll('.message td')].map(cell => {
			const before = getComputedStyle(cell, '::before').content;
			return before.replace('attr(data-label)', cell.dataset.label).replaceAll('"', '').replace(/ +:/, ':').replace(/ +$/, ' ') }).join('|')`), "each figure has its label")
		require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('.message td')].every(cell => {
			const text = document.createRange(); text.selectNodeContents(cell); const at = text.getBoundingClientRect();
			return at.left >= 0 && at.right <= innerWidth && cell.scrollWidth <= cell.clientWidth })`), "no figure is out of view at %d", width)
		require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('.message td:not(:first-child)')].every(cell => {
			const text = document.createRange(); text.selectNodeContents(cell); return text.getClientRects().length === 1 })`), "no figure is broken at %d", width)
		require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('.buttons button')].every(button => button.offsetHeight >= 44)`), "a finger hits each button at %d", width)
		require.Equal(t, "Approve Reject", browser.Eval(`[...document.querySelectorAll('.buttons button')].map(button => button.textContent).join(' ')`))
		if folder := pictures(); folder != "" {
			browser.Picture(fmt.Sprintf("%s/approval-%d.png", folder, width))
		}
	}
}
