import {
	ApprovalIcon,
	ClockIcon,
	CodeIcon,
	EditIcon,
	type Icon,
	icon,
	KeyIcon,
	LogIcon,
	PieceIcon,
	StopIcon,
	WorkflowIcon,
} from "@/ui/icons";
import { markOf } from "../mark";

const GlobeIcon = icon("M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2Z", "M2 8h12M8 2c4 3.6 4 8.4 0 12M8 2c-4 3.6-4 8.4 0 12");
const GraphIcon = icon("M8 2.5 13 5.3v5.4L8 13.5l-5-2.8V5.3ZM8 2.5l5 8.2H3Z");
const TableIcon = icon("M2.5 3h11v10h-11ZM2.5 6.5h11M6.5 6.5V13");
const MailIcon = icon("M2 4h12v8.5H2ZM2 4.5l6 4.5 6-4.5");
export const LoopIcon = icon(
	"M3 7.5a4.5 4.5 0 0 1 8-2.2L13 7M13 3.5V7H9.5M13 8.5a4.5 4.5 0 0 1-8 2.2L3 9M3 12.5V9h3.5",
);
export const EachIcon = icon("M2.5 4.5h2M2.5 8h2M2.5 11.5h2M7 4.5h6.5M7 8h6.5M7 11.5h6.5");
export const PinIcon = icon("M9.5 2 14 6.5l-2.5 1-2 3.5L5 6.5 8.5 4.5ZM7 9l-4.5 4.5");
export const ShieldIcon = icon("M8 2 13 4v3.6c0 3-2 5.3-5 6.4-3-1.1-5-3.4-5-6.4V4Z");

const BranchIcon = icon("M8 2v4M8 6c0 3-5 2-5 6M8 6c0 3 5 2 5 6M1.5 10.5 3 12l1.5-1.5M11.5 10.5 13 12l1.5-1.5");

const actions: Record<string, Icon> = {
	"http.request": GlobeIcon,
	"graphql.request": GraphIcon,
	"log.write": LogIcon,
	"data.set": EditIcon,
	"code.js": CodeIcon,
	"flow.wait": ClockIcon,
	"flow.approval": ApprovalIcon,
	"flow.run": WorkflowIcon,
	"flow.stop": StopIcon,
	"flow.switch": BranchIcon,
	foreach: EachIcon,
	repeat: LoopIcon,
};

const families: Record<string, Icon> = {
	code: CodeIcon,
	db: TableIcon,
	flow: PieceIcon,
	graphql: GraphIcon,
	log: LogIcon,
	email: MailIcon,
	mail: MailIcon,
	data: EditIcon,
	http: GlobeIcon,
	table: TableIcon,
	state: KeyIcon,
};

/** actionIcon returns the icon of an action. The operations of an integration have its mark. */
export function actionIcon(uses: string): Icon {
	const family = uses.split(".")[0] ?? "";
	return actions[uses] ?? families[family] ?? (uses.includes(".") ? markOf(family) : PieceIcon);
}
