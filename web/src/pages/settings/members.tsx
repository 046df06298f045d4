import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Members() {
	return (
		<Page>
			<PageHeader title="Members" />
			<Card>
				<EmptyState title="No members." />
			</Card>
		</Page>
	);
}
