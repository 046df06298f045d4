/** saveBlob downloads bytes as a file. */
export function saveBlob(name: string, blob: Blob): void {
	const address = URL.createObjectURL(blob);
	const link = document.createElement("a");
	link.href = address;
	link.download = name;
	link.click();
	// The browser reads the URL asynchronously.
	setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
