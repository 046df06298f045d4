import type { ReactNode, SVGProps } from "react";

export type IconProps = SVGProps<SVGSVGElement> & { size?: number };
export type Icon = (props: IconProps) => ReactNode;

/** svgIcon creates a 16 by 16 icon in the current text color. */
export function svgIcon(children: ReactNode): Icon {
	// biome-ignore lint/correctness/noComponentHookFactories: each icon is created once, with its module
	return function Icon({ size = 16, className, ...rest }: IconProps) {
		return (
			<svg
				width={size}
				height={size}
				viewBox="0 0 16 16"
				fill="none"
				stroke="currentColor"
				strokeWidth={1.5}
				strokeLinecap="round"
				strokeLinejoin="round"
				aria-hidden="true"
				focusable="false"
				className={className ? `shrink-0 ${className}` : "shrink-0"}
				{...rest}
			>
				{children}
			</svg>
		);
	};
}

/** icon creates an icon from paths. */
export function icon(...lines: string[]): Icon {
	return svgIcon(lines.map((line) => <path key={line} d={line} />));
}

const circle = (x: number, y: number, r: number) =>
	`M${x} ${y - r}a${r} ${r} 0 1 0 0 ${2 * r}a${r} ${r} 0 1 0 0 ${-2 * r}Z`;

const box = (x: number, y: number, width: number, height: number) =>
	`M${x + 1} ${y}h${width - 2}a1 1 0 0 1 1 1v${height - 2}a1 1 0 0 1-1 1h${2 - width}a1 1 0 0 1-1-1v${2 - height}a1 1 0 0 1 1-1Z`;

export const WorkflowIcon = icon(box(2, 2, 5, 4), box(9, 10, 5, 4), "M4.5 6v4a2 2 0 0 0 2 2H9");
export const RunsIcon = icon("M4 3.2v9.6a.6.6 0 0 0 .9.5l8-4.8a.6.6 0 0 0 0-1l-8-4.8a.6.6 0 0 0-.9.5Z");
export const ApprovalIcon = icon(
	"M8 1.8 13 3.5v4c0 3.3-2.1 5.6-5 6.7-2.9-1.1-5-3.4-5-6.7v-4Z",
	"m5.8 7.9 1.6 1.6 2.9-3.2",
);
export const TemplateIcon = icon(box(2, 2, 12, 5), box(2, 9.5, 5, 4.5), box(9.5, 9.5, 4.5, 4.5));
export const KeyIcon = icon(circle(5, 11, 3), "m7.2 8.8 6-6M11 5l2 2");
export const WebhookIcon = icon(
	circle(8, 4.5, 2.5),
	circle(4, 11.5, 2.5),
	circle(12, 11.5, 2.5),
	"M6.9 6.8 5.3 9.4M9.1 6.8l1.6 2.6M6.5 11.5h3",
);
export const PlugIcon = icon("M5.5 2v3M10.5 2v3M3.5 5h9v3a4.5 4.5 0 0 1-9 0ZM8 12.5V15");
export const PieceIcon = icon("M8 2 13.5 5v6L8 14l-5.5-3V5ZM2.5 5 8 8l5.5-3M8 8v6");
export const SecretIcon = icon(box(3, 7, 10, 7), "M5.5 7V5a2.5 2.5 0 0 1 5 0v2");
export const TableIcon = icon(box(2, 2.5, 12, 11), "M2 6.5h12M2 10h12M6.5 6.5v7");
export const FileIcon = icon("M4 1.8h5L12.5 5.3v8.9H4ZM9 1.8v3.5h3.5");
export const ImageIcon = icon(box(2, 2.5, 12, 11), circle(5.5, 6, 1.1), "m2.5 12 3.5-3.5 2.5 2.5 2.5-2.5 3 3");
export const AudioIcon = icon("M6 12V3.5l7-1.5v8.5", circle(4, 12, 2), circle(11, 10.5, 2));
export const VideoIcon = icon(box(1.5, 3.5, 9, 9), "m10.5 7 4-2.2v6.4l-4-2.2");
export const BracesIcon = icon(
	"M6 2.5H5A1.5 1.5 0 0 0 3.5 4v2.5L2 8l1.5 1.5V12A1.5 1.5 0 0 0 5 13.5h1M10 2.5h1A1.5 1.5 0 0 1 12.5 4v2.5L14 8l-1.5 1.5V12a1.5 1.5 0 0 1-1.5 1.5h-1",
);
export const SettingsIcon = icon("M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6", circle(10, 4.5, 2), circle(6, 11.5, 2));
export const ReferenceIcon = icon(
	"M3 3.5A1.5 1.5 0 0 1 4.5 2H13v10H4.5A1.5 1.5 0 0 0 3 13.5Zm0 10A1.5 1.5 0 0 0 4.5 14H13v-2",
);
export const PlusIcon = icon("M8 3v10M3 8h10");
export const CloseIcon = icon("m4 4 8 8M12 4l-8 8");
export const CheckIcon = icon("m3 8.5 3.2 3.2L13 4.8");
export const SearchIcon = icon(circle(7, 7, 4.5), "m10.5 10.5 3 3");
export const ChevronDownIcon = icon("m4 6 4 4 4-4");
export const ChevronUpIcon = icon("m4 10 4-4 4 4");
export const ChevronRightIcon = icon("m6 4 4 4-4 4");
export const ChevronLeftIcon = icon("m10 4-4 4 4 4");
export const ArrowRightIcon = icon("M3 8h10m-4-4 4 4-4 4");
export const ArrowUpIcon = icon("M8 13V3M4 7l4-4 4 4");
export const ArrowDownIcon = icon("M8 3v10M4 9l4 4 4-4");
export const MoreIcon = icon(circle(3.5, 8, 0.6), circle(8, 8, 0.6), circle(12.5, 8, 0.6));
export const MenuIcon = icon("M2.5 4.5h11M2.5 8h11M2.5 11.5h11");
export const CopyIcon = icon(
	box(5.5, 5.5, 8, 8),
	"M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5",
);
export const TrashIcon = icon("M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9M6.5 7v4M9.5 7v4");
export const EditIcon = icon("M10.5 3 13 5.5 5.5 13 2.5 13.5 3 10.5Z");
export const RetryIcon = icon("M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5");
export const PlayIcon = RunsIcon;
export const PauseIcon = icon("M5.5 3v10M10.5 3v10");
export const StopIcon = icon(box(3.5, 3.5, 9, 9));
export const DownloadIcon = icon("M8 2.5v8m-3-3 3 3 3-3M3 13.5h10");
export const UploadIcon = icon("M8 10.5v-8m-3 3 3-3 3 3M3 13.5h10");
export const ExternalIcon = icon(
	"M9.5 2.5h4v4M13.5 2.5 8 8M11.5 9.5v3a1 1 0 0 1-1 1h-7a1 1 0 0 1-1-1v-7a1 1 0 0 1 1-1h3",
);
export const FilterIcon = icon("M2 3.5h12M4.5 8h7M6.5 12.5h3");
export const EyeIcon = icon("M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8Z", circle(8, 8, 2));
export const WarningIcon = icon("M8 2 1.8 13.5h12.4ZM8 6.5V9.5M8 11.6v.1");
export const InfoIcon = icon(circle(8, 8, 6), "M8 7.5V11M8 5.1V5");
export const SunIcon = icon(
	circle(8, 8, 2.8),
	"M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
);
export const MoonIcon = icon("M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z");
export const ScreenIcon = icon(box(2, 3, 12, 8), "M6 13.5h4");
export const UserIcon = icon(circle(8, 5.5, 2.8), "M2.8 13.8c.5-2.8 2.6-4.3 5.2-4.3s4.7 1.5 5.2 4.3");
export const MembersIcon = icon(
	circle(6, 5.5, 2.3),
	"M1.8 13c.3-2.4 2-3.7 4.2-3.7S9.9 10.6 10.2 13M10.5 3.4a2.3 2.3 0 0 1 0 4.2M12 9.7c1.3.5 2 1.7 2.2 3.3",
);
export const ChartIcon = icon("M2.5 2.5v11h11M5.5 10.5v-3M8.5 10.5v-6M11.5 10.5V7");
export const LogIcon = icon("M3.5 2.5h9v11h-9ZM6 5.5h4M6 8h4M6 10.5h2");
export const SignOutIcon = icon("M6.5 2.5h-3a1 1 0 0 0-1 1v9a1 1 0 0 0 1 1h3M6.5 8h7m-3-3 3 3-3 3");
export const ClockIcon = icon(circle(8, 8, 6), "M8 4.5V8l2.3 1.5");
export const BoltIcon = icon("M9 1.5 3 9h4.5L7 14.5 13 7H8.5Z");
export const KeyboardIcon = icon(box(1.5, 4, 13, 8.5), "M4 6.8h.1M6.7 6.8h.1M9.3 6.8h.1M12 6.8h.1M5 9.8h6");
export const CodeIcon = icon("m5 4.5-3.5 3.5L5 11.5M11 4.5 14.5 8 11 11.5M9.3 3 6.7 13");
