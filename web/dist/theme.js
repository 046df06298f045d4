// Sets the theme before the first paint, so that a dark screen never flashes.
(() => {
	let choice = null;
	try {
		choice = localStorage.getItem("stepmill.theme");
	} catch {
		// Without storage the system decides.
	}
	const dark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
	document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
