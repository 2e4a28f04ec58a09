// @ts-check
// What the theme leaves open about the two lists beside a page, where a narrow window shows them as
// dialogs: who has chosen a place on this page wants to see it, and who closes a list wants to go
// on where it was opened.

for (const side of ["primary", "secondary"]) {
  const dialog = document.querySelector(`#pst-${side}-sidebar-modal`);
  if (!(dialog instanceof HTMLDialogElement)) continue;
  dialog.addEventListener("click", ({ target }) => {
    if (target instanceof Element && target.closest("a[href^='#']")) dialog.close();
  });
  dialog.addEventListener("close", () => {
    const opener = document.querySelector(`.${side}-toggle`);
    if (opener instanceof HTMLElement && opener.checkVisibility())
      opener.focus({ preventScroll: true });
  });
}
