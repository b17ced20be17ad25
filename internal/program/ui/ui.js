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
  const refresh = async () => {
    const live = document.getElementById('live');
    if (!live || busy || document.hidden || typing(live)) return;
    busy = true;
    try {
      const answer = await fetch(location.href, {credentials: 'same-origin', redirect: 'error'});
      if (!answer.ok) return;
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
    } catch {
      // The server is away: what is shown stays, and the next try comes.
    } finally {
      busy = false;
    }
  };
  setInterval(() => {
    if (document.querySelector('#live[data-live]')) refresh();
  }, Number(document.querySelector('#live')?.dataset.live) || 3000);
})();
