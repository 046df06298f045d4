import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Welcome() {
	return (
		<Page>
			<PageHeader title="Welcome" />
			<Card>
				<EmptyState title="Welcome" />
			</Card>
		</Page>
	);
}
