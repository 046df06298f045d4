import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Approvals() {
	return (
		<Page>
			<PageHeader title="Approvals" />
			<Card>
				<EmptyState title="Nobody is waiting for you." />
			</Card>
		</Page>
	);
}
