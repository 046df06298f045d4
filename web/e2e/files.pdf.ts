import { type Sample, sample } from "./files.data";

/** pdf returns a document with these objects, the first of which is the catalog. */
function pdf(name: string, objects: string[], trailer = ""): Sample {
	let text = "%PDF-1.7\n";
	const offsets = objects.map((object, at) => {
		const offset = text.length;
		text += `${at + 1} 0 obj\n${object}\nendobj\n`;
		return `${String(offset).padStart(10, "0")} 00000 n \n`;
	});
	const start = text.length;
	const size = objects.length + 1;
	text += `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join("")}`;
	text += `trailer\n<< /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`;
	return sample(name, "application/pdf", Buffer.from(text, "latin1"));
}

const stream = (content: string, entries = "") =>
	`<< /Length ${content.length} ${entries} >>\nstream\n${content}\nendstream`;

/** Each page has its number as text and a red square in its lower left corner; the last one is in landscape format. */
export function paper(name: string, pages: number, trailer = ""): Sample {
	const ids = Array.from({ length: pages }, (_, at) => 4 + at * 2);
	return pdf(
		name,
		[
			"<< /Type /Catalog /Pages 2 0 R >>",
			`<< /Type /Pages /Count ${pages} /Kids [${ids.map((id) => `${id} 0 R`).join(" ")}] >>`,
			"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
			...ids.flatMap((id, at) => [
				`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${at > 0 && at === pages - 1 ? "842 595" : "595 842"}] /Contents ${id + 1} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
				stream(
					`1 0 0 rg 0 0 200 200 re f 0 g BT /F1 48 Tf 72 ${at > 0 && at === pages - 1 ? 500 : 740} Td (Page ${at + 1}) Tj ET`,
				),
			]),
		],
		trailer,
	);
}

const script = `try { app.alert("owned"); } catch (e) {} try { this.owned = 1; globalThis.owned = 1; app.launchURL("https://example.com/js"); } catch (e) {}`;
const js = `<< /S /JavaScript /JS (${script.replaceAll("(", "\\(").replaceAll(")", "\\)")}) >>`;
const everywhere = "/Rect [0 0 595 842]";

/** A document that runs scripts, follows links and loads resources in every way that the format knows. */
export const hostilePdf: Sample = pdf("hostile.pdf", [
	`<< /Type /Catalog /Pages 2 0 R /OpenAction ${js} /AA << /WC ${js} /WS ${js} >> /Names << /JavaScript << /Names [(a) ${js}] >> >> /URI << /Base (https://example.com/base/) >>
	/AcroForm << /Fields [7 0 R] /NeedAppearances true /XFA (<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><script>${"window.owned=1"}</script></xdp:xdp>) >> >>`,
	"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
	`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /AA << /O ${js} /C ${js} >> /Contents 4 0 R /Annots [5 0 R 6 0 R 7 0 R 8 0 R 9 0 R]
	/Resources << /Font << /F1 10 0 R /F2 12 0 R >> /XObject << /X 11 0 R >> >> >>`,
	stream("1 0 0 rg 0 0 200 200 re f 0 g BT /F1 48 Tf 72 740 Td (Hostile) Tj /F2 20 Tf (font) Tj ET /X Do"),
	`<< /Type /Annot /Subtype /Link ${everywhere} /A << /S /URI /URI (https://example.com/uri) >> >>`,
	`<< /Type /Annot /Subtype /Link ${everywhere} /A << /S /URI /URI (javascript:window.owned=1) >> /AA << /E ${js} /U ${js} >> >>`,
	`<< /Type /Annot /Subtype /Widget /FT /Tx /T (field) /V (value) ${everywhere} /A << /S /SubmitForm /F (https://example.com/submit) >> /AA << /E ${js} /K ${js} /Fo ${js} >> >>`,
	`<< /Type /Annot /Subtype /Link ${everywhere} /A << /S /Launch /F (https://example.com/launch) /NewWindow true >> >>`,
	`<< /Type /Annot /Subtype /Link ${everywhere} /A << /S /GoToR /F (https://example.com/remote.pdf) /D [0 /Fit] >> >>`,
	// A name that ends the reference to a local font and adds one to a server.
	"<< /Type /Font /Subtype /TrueType /BaseFont /Arial#29#2curl#28https:#2f#2fexample.com#2ffont.ttf /FirstChar 32 /LastChar 32 /Widths [300] >>",
	stream(
		"",
		"/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceRGB /BitsPerComponent 8 /F << /FS /URL /F (https://example.com/image.png) >>",
	),
	// Once executed by a vulnerable version of PDF.js.
	`<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FontMatrix [1 2 3 4 5 (1\\); globalThis.owned = 1; //)] >>`,
]);

export const encryptedPdf: Sample = paper(
	"secret.pdf",
	1,
	`/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (${"o".repeat(32)}) /U (${"u".repeat(32)}) >>`,
);
