package report

// script marks the rows that the row under the pointer, or with the focus, has waited for, and
// opens the row that a link leads to. The page is complete without it.
const script = `
(function () {
  var lists = Array.from(document.querySelectorAll('.rows'));
  var marked = [];
  function clear() {
    marked.forEach(function (row) { row.classList.remove('needed', 'looked'); });
    marked = [];
    lists.forEach(function (list) { list.classList.remove('looking'); });
  }
  function look(e) {
    var row = e.target.closest('.row');
    if (!row) return;
    clear();
    marked = [row];
    row.classList.add('looked');
    (row.dataset.waits || '').split(' ').forEach(function (id) {
      var other = id ? document.getElementById(id) : null;
      if (other) { other.classList.add('needed'); marked.push(other); }
    });
    row.parentNode.classList.add('looking');
  }
  lists.forEach(function (list) {
    list.addEventListener('pointerover', look);
    list.addEventListener('focusin', look);
    list.addEventListener('pointerleave', clear);
    list.addEventListener('focusout', clear);
  });
  function open() {
    var row = document.getElementById(location.hash.slice(1));
    var details = row ? row.querySelector('details') : null;
    if (details) details.open = true;
  }
  window.addEventListener('hashchange', open);
  open();
})();
`
