// Replaces what is live on a page by what the server has now. Everything works without.
(() => {
  'use strict';
  let busy = false;
  // Local times are beside those in UTC once a person wants that; a cookie keeps the zone, so that the server begins the day
  // at the same midnight.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const wantsLocal = () => document.cookie.split('; ').some(one => one.startsWith('reprise_zone=') && one.length > 13);
  const localText = at => at.toLocaleString(undefined, {weekday: 'short', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', timeZoneName: 'short'});
  const localTimes = root => {
    for (const time of root.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime);
      if (isNaN(at)) continue;
      const shown = time.querySelector('.local');
      if (!wantsLocal()) {
        shown?.remove();
      } else if (!shown) {
        const text = document.createElement('span');
        text.className = 'local';
        text.textContent = ' (' + localText(at) + ')';
        time.append(text);
      }
    }
  };
  const zoneSwitch = document.getElementById('zone');
  if (zoneSwitch) {
    const show = () => {
      zoneSwitch.setAttribute('aria-pressed', String(wantsLocal()));
      localTimes(document);
    };
    zoneSwitch.hidden = false;
    zoneSwitch.textContent = 'Local time';
    zoneSwitch.title = 'Show times in ' + zone + ' beside UTC';
    zoneSwitch.addEventListener('click', () => {
      document.cookie = wantsLocal() ? 'reprise_zone=; path=/; max-age=0; samesite=strict'
        : 'reprise_zone=' + encodeURIComponent(zone) + '; path=/; max-age=31536000; samesite=strict';
      show();
    });
    show();
  }
  // Nothing moves for a moment after the key Tab, so that the next one leads to what comes next.
  let tabbed = 0;
  addEventListener('keydown', event => { if (event.key === 'Tab') tabbed = Date.now(); });
  const tabbing = () => Date.now() - tabbed < 4000;
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
    const at = document.querySelector('footer time')?.firstChild?.textContent;
    const text = `This page shows what was known${at ? ' at ' + at : ''}: ${why}`;
    if (note.textContent !== text) note.textContent = text;
  };
  // The timeline of a run with its attempts and waits takes more calls to the server than the rest of the page, so it is
  // fetched apart, and less often.
  let drawn = null, drawnAt = 0;
  const draw = async () => {
    const place = document.querySelector('section #timeline[data-from]');
    if (!place || location.pathname.endsWith('/timeline')) return;
    if (drawn && place !== drawn) place.replaceWith(drawn);
    const isLive = 'live' in place.dataset;
    if (drawnAt && (!isLive || Date.now() - drawnAt < 5000) && drawn?.dataset.done === String(!isLive)) return;
    drawnAt = Date.now();
    try {
      const answer = await fetch(place.dataset.from, {credentials: 'same-origin', redirect: 'error'});
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('timeline');
      if (!next) return;
      next.dataset.done = String(!isLive);
      const now = document.querySelector('section #timeline');
      drawn = document.adoptNode(next);
      if (now && !tabbing() && !now.contains(document.activeElement)) now.replaceWith(drawn);
    } catch {
      drawnAt = 0; // until a later try
    }
  };
  const refresh = async () => {
    const live = document.getElementById('live');
    if (!live || busy || document.hidden || tabbing() || typing(live)) return;
    busy = true;
    try {
      const answer = await fetch(location.href, {credentials: 'same-origin', redirect: 'error'});
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (!answer.ok) return stale(page.getElementById('problem')?.textContent || `the server responds with HTTP ${answer.status}.`);
      const next = page.getElementById('live');
      if (!next || tabbing() || typing(live)) return;
      for (const part of live.querySelectorAll('details[id]')) {
        const same = next.querySelector('#' + CSS.escape(part.id));
        if (same) same.open = part.open;
      }
      const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
      live.replaceWith(document.adoptNode(next));
      if (focused) document.querySelector('#live a[href="' + CSS.escape(focused) + '"]')?.focus();
      document.querySelector('footer').replaceWith(document.adoptNode(page.querySelector('footer')));
      document.title = page.title;
      localTimes(document);
      draw();
      stale('');
    } catch {
      stale(document.getElementById('live').dataset.away || 'the server does not respond.'); // until a later try
    } finally {
      busy = false;
    }
  };
  draw();
  setInterval(() => {
    if (document.querySelector('#live[data-live]')) refresh();
  }, Number(document.querySelector('#live')?.dataset.live) || 1500);
})();
