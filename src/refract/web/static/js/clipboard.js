// Copying to the clipboard.

/** Copy a text; return whether that worked. */
export async function copyText(text) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyBySelection(text);
    return true;
  } catch {
    return false;
  }
}

// Plain HTTP has no clipboard API; selecting and copying works there. A modal dialog takes the focus of what is
// outside it.
function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.className = "unseen";
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("copy refused");
}
