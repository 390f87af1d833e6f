// Files that are larger than the server reads. Browsers put a picture of every site into their bookmarks: most of the file, and of no use here.
const chosen = document.querySelector("#field-file");
const most = Number(chosen.dataset.most);
const PICTURE = /\sICON="[^"]*"/gi;

chosen.addEventListener("change", async () => {
  chosen.setCustomValidity("");
  const [file] = chosen.files;
  if (!file || file.size <= most) return;
  if (/\.html?$/i.test(file.name)) {
    chosen.setCustomValidity("One moment: the pictures in the file are left out.");
    const without = new DataTransfer();
    without.items.add(new File([(await file.text()).replace(PICTURE, "")], file.name, { type: file.type }));
    chosen.files = without.files;
    chosen.setCustomValidity("");
  }
  if (chosen.files[0].size <= most) return;
  chosen.setCustomValidity(`Larger than ${Math.round(most / 2 ** 20)} MiB. On the server, “refract import library FILE” takes files of any size.`);
  chosen.reportValidity();
});
