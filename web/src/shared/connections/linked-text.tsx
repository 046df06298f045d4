/** LinkedText shows text with its https addresses as links. */
export function LinkedText({ text }: { text: string }) {
	// The parts at odd positions are the addresses, without the punctuation of the sentence.
	return text.split(/(https:\/\/\S*[^\s.,:;)])/).map((part, at) =>
		at % 2 === 0 ? (
			part
		) : (
			<a key={part} href={part} target="_blank" rel="noreferrer" className="break-all text-accent underline">
				{part}
			</a>
		),
	);
}
