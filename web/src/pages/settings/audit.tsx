import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Audit() {
	return (
		<Page>
			<PageHeader title="Audit log" />
			<Card>
				<EmptyState title="Nothing has happened yet." />
			</Card>
		</Page>
	);
}
