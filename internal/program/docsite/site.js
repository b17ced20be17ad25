// Search, anchors beside headings, and buttons that copy code. The pages work without.
(() => {
  'use strict';
  const up = document.body.dataset.up;
  for (const heading of document.querySelectorAll('main :is(h2, h3)[id]')) {
    const link = document.createElement('a');
    link.className = 'anchor';
    link.href = '#' + heading.id;
    link.textContent = '#';
    link.ariaLabel = 'Link to this section';
    heading.append(link);
  }

  for (const pre of document.querySelectorAll('main pre:not(:has(.language-text))')) {
    const block = document.createElement('div'), button = document.createElement('button');
    block.className = 'block';
    button.className = 'copy';
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent.replace(/\n$/, ''));
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(pre);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    pre.replaceWith(block);
    block.append(pre, button);
  }

  if (matchMedia('(max-width: 800px)').matches) for (const group of document.querySelectorAll('.documents details')) group.open = false;

  // words are those of a text; a name such as max_wait or Retry-After is one, and its parts are others.
  const words = text => (text.toLowerCase().match(/[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/gu) ?? [])
    .flatMap(word => /[-._]/.test(word) ? [word, ...word.split(/[-._]+/).filter(Boolean)] : [word]);
  // common are words of questions that say nothing of what is looked for.
  const common = new Set(('a an and are as at be by can do does for from get how i if in is it me my of on or own so that the there ' +
    'this to was were what when where which who why will with you your').split(' '));
  // same are words of one thing.
  const same = {postgresql: 'postgres', crontab: 'cron'};
  // also are words that people ask with, and the words of these pages that are meant.
  const also = {
    timezone: ['zone'], tz: ['zone'], utc: ['zone'], dst: ['clocks'], backoff: ['delay', 'initial_delay'], throttle: ['rate_limit', 'limit'], throttling: ['rate_limit', 'limit'],
    ratelimit: ['rate_limit', 'limit'], quota: ['rate_limit'], dedupe: ['upsert', 'key'], dedup: ['upsert', 'key'], deduplicate: ['upsert', 'key'], deduplication: ['upsert', 'key'],
    duplicate: ['upsert', 'twice'], duplicates: ['upsert', 'twice'], merge: ['upsert'], overwrite: ['replace'], truncate: ['replace'], checkpoint: ['watermark'], bookmark: ['watermark'],
    cron: ['schedule'], cronjob: ['schedule'], nightly: ['schedule'], secret: ['connection'], credential: ['connection', 'secret'], credentials: ['connection', 'secret'],
    password: ['connection', 'secret'], apikey: ['connection'], vault: ['connection', 'secret'], webhook: ['callback', 'delivery'], dlq: ['dead', 'letter'], foreach: ['loop'],
    iterate: ['loop'], map: ['loop'], branch: ['route', 'next'], conditional: ['route', 'when'], subflow: ['playbook'], dag: ['playbook'], pipeline: ['playbook'], flow: ['playbook'],
    task: ['step'], k8s: ['kubernetes'], helm: ['kubernetes'], docker: ['compose'], monitoring: ['metrics'], observability: ['metrics'], prometheus: ['metrics'], grafana: ['metrics'],
    alert: ['notify'], alerting: ['notify'], notification: ['notify'], stuck: ['hangs'], abort: ['cancel'], kill: ['cancel'], parallelism: ['max_concurrency', 'parallel'],
    environment: ['variable'], env: ['variable'], parameter: ['workload'], parameters: ['workload'], argument: ['workload'], migration: ['schema_contract'], manual: ['approval'],
  };

  // stem has forms of a word found by one another.
  const stem = given => {
    const word = Object.hasOwn(same, given) ? same[given] : given;
    return word.length > 4 ? word.replace(/(?:ing|ed|es|s|e)$/, '') : word.replace(/s$/, '');
  };

  // count counts the words of a text by their stems.
  const count = text => {
    const counts = new Map();
    for (const word of words(text)) counts.set(stem(word), (counts.get(stem(word)) ?? 0) + 1);
    return counts;
  };

  // inside are the pages for those who change Reprise; others ask more often.
  const inside = /^(?:decisions\/|architecture|contributing|changelog)/;

  // described is the reference: a question of several words looks for what explains first.
  const described = /^reference\//;

  // meant are the sections that people look for who ask with one word or two.
  const meant = {
    'how-to/schedule.html#when-clocks-move': ['timezone', 'time zone', 'tz', 'dst', 'daylight saving'],
    'concepts/waits.html#rate-limits': ['rate limit', 'rate limits', 'ratelimit', 'rate limiting', 'throttle', 'throttling'],
    'concepts/waits.html#between-attempts': ['backoff', 'exponential backoff', 'jitter', 'retry delay'],
    'how-to/load-a-table.html#rows-that-the-table-already-has': ['dedupe', 'dedup', 'deduplicate', 'deduplication', 'duplicates', 'upsert', 'merge'],
    'how-to/schedule.html': ['cron', 'cron job', 'cronjob', 'crontab', 'schedule'],
    'how-to/secrets.html': ['secret', 'secrets', 'credentials', 'password', 'api key', 'apikey', 'vault'],
    'how-to/call-from-outside.html': ['webhook', 'webhooks', 'http api'],
    'concepts/attempts.html': ['retry', 'retries', 'pagination', 'paging'],
    'how-to/failed-iterations.html': ['dlq', 'dead letter queue', 'failed items'],
    'how-to/deploy.html': ['production', 'docker', 'install', 'systemd'],
  };
  const meantBy = (query, typing) => {
    const asked = query.trim().toLowerCase();
    return Object.keys(meant).filter(target => meant[target].some(name => name === asked || typing && asked.length > 2 && name.startsWith(asked)));
  };

  // counted are the words of a part, which are counted once.
  const known = new WeakMap();
  const counted = part => {
    if (!known.has(part)) known.set(part, {title: count(part.title), of: count(part.of), text: count(part.text)});
    return known.get(part);
  };

  // begun are the words of all parts that begin so: the last word is still being typed.
  const begun = (parts, beginning) => {
    const all = new Set();
    for (const part of parts) {
      const {title, text} = counted(part);
      for (const word of [...title.keys(), ...text.keys()]) if (word !== beginning && word.startsWith(beginning)) all.add(word);
    }
    return [...all];
  };

  // rank gives the parts that match, best first: those that have more of the words, and in
  // their titles.
  const rank = (parts, query, typing) => {
    let wanted = [...new Set(words(query))];
    const telling = wanted.filter(word => !common.has(word));
    if (telling.length) wanted = telling;
    const stems = [...new Set(wanted.map(stem))];
    const others = stems.map(word => wanted.filter(given => stem(given) === word && Object.hasOwn(also, given)).flatMap(given => also[given].map(stem)));
    if (typing && stems.length && /[\p{L}\p{N}]$/u.test(query)) others.at(-1).push(...begun(parts, wanted.at(-1)), ...begun(parts, stems.at(-1)));
    const rows = parts.map(part => {
      const {title, of, text} = counted(part);
      const weigh = word => {
        const times = text.get(word) ?? 0;
        return (title.has(word) ? 3 + 3 / title.size : of.has(word) ? 1 : 0) + (times ? 1 + Math.log(times) : 0) / (1 + Math.log(1 + part.text.length / 2000));
      };
      return stems.map((word, i) => Math.max(weigh(word), ...others[i].map(other => .7 * weigh(other))));
    });
    const rare = stems.map((_, i) => Math.log(1 + parts.length / (1 + rows.filter(row => row[i] > 0).length)));
    const phrase = query.trim().toLowerCase();
    const first = meantBy(query, typing);
    return parts.map((part, n) => {
      if (first.includes(part.page + (part.anchor ? '#' + part.anchor : ''))) return {part, score: Infinity};
      const has = rows[n].reduce((sum, one, i) => sum + (one > 0 ? rare[i] : 0), 0) / rare.reduce((sum, one) => sum + one, 0);
      let score = rows[n].reduce((sum, one, i) => sum + one * rare[i], 0) * has ** 2;
      if (phrase.length > 3 && part.text.toLowerCase().includes(phrase)) score *= 2;
      if (inside.test(part.page)) score /= 2;
      if (described.test(part.page) && telling.length > 2) score *= .8;
      return {part, score};
    }).filter(one => one.score > 0).sort((x, y) => y.score - x.score);
  };

  // excerpt is what stands around the first of the words.
  const excerpt = (text, query) => {
    const lower = text.toLowerCase();
    const at = Math.max(0, Math.min(...words(query).filter(word => !common.has(word)).map(word => lower.indexOf(stem(word))).filter(i => i >= 0), text.length) - 60);
    return (at > 0 ? '… ' : '') + text.slice(at, at + 200).trim() + (at + 200 < text.length ? ' …' : '');
  };

  // parts are those of the index, which is read once.
  let index;
  const find = async (query, most, typing) => rank(await (index ??= fetch(up + 'search.json').then(response => response.json())), query, typing).slice(0, most);
  const hrefOf = part => up + part.page + (part.anchor ? '#' + part.anchor : '');
  const titleOf = part => part.of === part.title ? part.title : part.title + ' – ' + part.of;

  const show = async query => {
    const best = await find(query, 20);
    document.getElementById('found').textContent = best.length ? '' : 'Nothing has these words.';
    document.getElementById('results').replaceChildren(...best.map(({part}) => {
      const item = document.createElement('li'), link = document.createElement('a'), text = document.createElement('p');
      link.href = hrefOf(part);
      link.textContent = titleOf(part);
      text.textContent = excerpt(part.text, query);
      item.append(link, text);
      return item;
    }));
  };

  const input = document.getElementById('q'), list = document.getElementById('suggestions');
  input.role = 'combobox';
  input.setAttribute('aria-controls', 'suggestions');
  input.setAttribute('aria-autocomplete', 'list');
  const select = item => {
    for (const one of list.children) one.ariaSelected = String(one === item);
    if (item) input.setAttribute('aria-activedescendant', item.id);
    else input.removeAttribute('aria-activedescendant');
    item?.scrollIntoView({block: 'nearest'});
  };
  const open = shown => {
    list.hidden = !shown;
    input.ariaExpanded = String(shown);
    if (!shown) select(null);
  };
  open(false);

  input.addEventListener('input', async () => {
    const asked = input.value;
    const best = asked.trim().length > 1 ? await find(asked, 8, true) : [];
    if (asked !== input.value) return; // a later key has its own answer
    list.replaceChildren(...best.map(({part}, i) => {
      const item = document.createElement('li'), link = document.createElement('a'), text = document.createElement('small');
      item.id = 'suggestion-' + i;
      item.role = 'option';
      link.href = hrefOf(part);
      link.tabIndex = -1;
      link.textContent = titleOf(part);
      text.textContent = excerpt(part.text, asked);
      link.append(text);
      item.append(link);
      return item;
    }));
    open(best.length > 0);
  });
  input.addEventListener('keydown', event => {
    const items = [...list.children], at = items.findIndex(item => item.ariaSelected === 'true');
    if (list.hidden) return;
    if (event.key === 'ArrowDown') select(items[(at + 1) % items.length]);
    else if (event.key === 'ArrowUp') select(items[at > 0 ? at - 1 : items.length - 1]);
    else if (event.key === 'Escape') open(false);
    else if (event.key === 'Enter' && at >= 0) location.href = items[at].querySelector('a').href;
    else return;
    event.preventDefault();
  });
  input.form.addEventListener('focusout', event => {
    if (!input.form.contains(event.relatedTarget)) setTimeout(() => open(false), 200); // after a click on a link
  });
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    input.focus();
  });

  const query = new URLSearchParams(location.search).get('q');
  if (document.getElementById('results') && query) {
    input.value = query;
    show(query);
  }
})();
