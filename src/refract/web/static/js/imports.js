// Bookmark files larger than the server reads: the site icons that browsers put into them are most of the file.

import { $ } from "./dom.js";

const ICON = /\sICON="[^"]*"/gi;
const input = $("#field-file");
const maxBytes = Number(input.dataset.most);

async function withoutIcons(file) {
  const transfer = new DataTransfer();
  transfer.items.add(new File([(await file.text()).replace(ICON, "")], file.name, { type: file.type }));
  return transfer.files;
}

input.addEventListener("change", async () => {
  input.setCustomValidity("");
  const [file] = input.files;
  if (!file || file.size <= maxBytes) return;
  if (/\.html?$/i.test(file.name)) {
    input.setCustomValidity("One moment: the pictures in the file are left out.");
    input.files = await withoutIcons(file);
    input.setCustomValidity("");
  }
  if (input.files[0].size <= maxBytes) return;
  const limit = `${Math.round(maxBytes / 2 ** 20)} MiB`;
  input.setCustomValidity(
    `Larger than ${limit}. On the server, “refract import library FILE” takes files of any size.`,
  );
  input.reportValidity();
});
