// Search, and anchors beside headings. The pages work without.
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

  if (matchMedia('(max-width: 800px)').matches) for (const group of document.querySelectorAll('nav details')) group.open = false;

  // words are those of a text; a name such as max_wait or Retry-After is one, and its parts are others.
  const words = text => (text.toLowerCase().match(/[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/gu) ?? [])
    .flatMap(word => /[-._]/.test(word) ? [word, ...word.split(/[-._]+/).filter(Boolean)] : [word]);
  // common are words of questions that say nothing of what is looked for.
  const common = new Set(('a an and are as at be by can do does for from get how i if in is it me my of on or own so that the there ' +
    'this to was were what when where which who why will with you your').split(' '));
  // same are words of one thing.
  const same = {postgresql: 'postgres', crontab: 'cron'};
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

  // rank gives the parts that match, best first: those that have more of the words, and in
  // their titles.
  const rank = (parts, query) => {
    let wanted = [...new Set(words(query))];
    const telling = wanted.filter(word => !common.has(word));
    if (telling.length) wanted = telling;
    const stems = [...new Set(wanted.map(stem))];
    const rows = parts.map(part => {
      const title = count(part.title), of = count(part.of), text = count(part.text);
      return stems.map(word => {
        const times = text.get(word) ?? 0;
        return (title.has(word) ? 3 + 3 / title.size : of.has(word) ? 1 : 0) + (times ? 1 + Math.log(times) : 0) / (1 + Math.log(1 + part.text.length / 2000));
      });
    });
    const rare = stems.map((_, i) => Math.log(1 + parts.length / (1 + rows.filter(row => row[i] > 0).length)));
    const phrase = query.trim().toLowerCase();
    return parts.map((part, n) => {
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

  const show = async query => {
    const parts = await (await fetch(up + 'search.json')).json();
    const best = rank(parts, query).slice(0, 20);
    document.getElementById('found').textContent = best.length ? '' : 'Nothing has these words.';
    document.getElementById('results').replaceChildren(...best.map(({part}) => {
      const item = document.createElement('li'), link = document.createElement('a'), text = document.createElement('p');
      link.href = up + part.page + (part.anchor ? '#' + part.anchor : '');
      link.textContent = part.of === part.title ? part.title : part.title + ' – ' + part.of;
      text.textContent = excerpt(part.text, query);
      item.append(link, text);
      return item;
    }));
  };

  const query = new URLSearchParams(location.search).get('q');
  if (document.getElementById('results') && query) {
    document.getElementById('q').value = query;
    show(query);
  }
})();
