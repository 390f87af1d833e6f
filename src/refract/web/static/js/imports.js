// Shrinks bookmark files that are too large to upload: site icons are most of such a file.

import { $ } from "./dom.js";
import { formatNumber, t } from "./i18n.js";

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
    input.setCustomValidity(t("Removing icons from the file…"));
    input.files = await withoutIcons(file);
    input.setCustomValidity("");
  }
  if (input.files[0].size <= maxBytes) return;
  input.setCustomValidity(
    t("Larger than {size} MiB. On the server, “refract import library FILE” takes files of any size.", {
      size: formatNumber(Math.round(maxBytes / 2 ** 20)),
    }),
  );
  input.reportValidity();
});
