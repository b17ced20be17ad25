// Replaces what is live on a page by what the server has now. Everything works without.
(() => {
  'use strict';
  let busy = false;
  // typing reports whether a person is about to use a form of the live part.
  const typing = live => {
    const focused = document.activeElement;
    if (live.contains(focused) && focused.matches('input, select, textarea, button')) return true;
    return [...live.querySelectorAll('input:not([type=hidden]):not([type=checkbox]), textarea')].some(field => field.value !== field.defaultValue);
  };
  // stale says why the page is not refreshed; '' takes that away.
  const stale = why => {
    let note = document.getElementById('stale');
    if (!why) return note?.remove();
    if (!note) {
      note = document.createElement('p');
      note.id = 'stale';
      note.className = 'note';
      note.setAttribute('role', 'status');
      document.getElementById('live').before(note);
    }
    const at = document.querySelector('footer time')?.textContent;
    const text = `This page shows what was known${at ? ' at ' + at : ''}: ${why}.`;
    if (note.textContent !== text) note.textContent = text;
  };
  const refresh = async () => {
    const live = document.getElementById('live');
    if (!live || busy || document.hidden || typing(live)) return;
    busy = true;
    try {
      const answer = await fetch(location.href, {credentials: 'same-origin', redirect: 'error'});
      if (!answer.ok) return stale(`the server responds with HTTP ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const next = page.getElementById('live');
      if (!next || typing(live)) return;
      for (const part of live.querySelectorAll('details[id]')) {
        const same = next.querySelector('#' + CSS.escape(part.id));
        if (same) same.open = part.open;
      }
      const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
      live.replaceWith(document.adoptNode(next));
      if (focused) document.querySelector('#live a[href="' + CSS.escape(focused) + '"]')?.focus();
      document.querySelector('footer').replaceWith(document.adoptNode(page.querySelector('footer')));
      document.title = page.title;
      stale('');
    } catch {
      stale('the server does not respond'); // until a later try
    } finally {
      busy = false;
    }
  };
  setInterval(() => {
    if (document.querySelector('#live[data-live]')) refresh();
  }, Number(document.querySelector('#live')?.dataset.live) || 3000);
})();
