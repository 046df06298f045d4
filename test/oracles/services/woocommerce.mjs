import WooCommerce from "@woocommerce/woocommerce-rest-api";

const WooCommerceRestApi = /** @type {any} */ (WooCommerce).default ?? WooCommerce;

const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

// gmt returns a time as the API takes it with dates_are_gmt.
const gmt = (time) => time && new Date(time).toISOString().slice(0, 19);

const text = (value) => (value === undefined ? undefined : String(value));
const meta = (metadata) => metadata && Object.entries(metadata).map(([key, value]) => ({ key, value }));
const ids = (list) => list?.map((id) => ({ id }));

// pages reads pages until there are enough items.
async function pages(woo, path, i, params = {}) {
  const per_page = i.all ? 100 : Math.min(i.limit ?? 100, 100);
  for (let page = 1, count = 0; i.all || count < (i.limit ?? 100); page++) {
    const { data } = await woo.get(path, given({ ...params, per_page, page }));
    count += data.length;
    if (data.length < per_page) return;
  }
}

const orderOf = (i) => ({
  customer_id: i.customer,
  billing: i.billing,
  shipping: i.shipping,
  status: i.status,
  set_paid: i.paid,
  payment_method: i.payment_method,
  customer_note: i.note,
  meta_data: meta(i.metadata),
});

const lineOf = ({ product, variation, quantity = 1, total }) => given({ product_id: product, variation_id: variation, quantity, subtotal: text(total), total: text(total) });

const productOf = (i) =>
  given({
    name: i.name,
    type: i.type,
    status: i.status,
    sku: i.sku,
    regular_price: text(i.price),
    sale_price: text(i.sale_price),
    description: i.description,
    short_description: i.short_description,
    manage_stock: i.stock === undefined ? undefined : true,
    stock_quantity: i.stock,
    stock_status: i.stock_status,
    categories: ids(i.categories),
    tags: ids(i.tags),
    images: i.images?.map((src) => ({ src })),
    weight: i.weight,
    meta_data: meta(i.metadata),
  });

const customerOf = (i) =>
  given({
    email: i.email,
    first_name: i.first_name,
    last_name: i.last_name,
    username: i.username,
    password: i.password,
    billing: i.billing,
    shipping: i.shipping,
    meta_data: meta(i.metadata),
  });

const poll = (after, orderby) => (woo, { cursor }) =>
  woo.get("orders", { [after]: cursor?.since ?? "2026-11-18T08:45:00", dates_are_gmt: true, orderby, order: "asc", per_page: 100, page: cursor?.page ?? 1 });

/** @type {import("../service.d.ts").Service<any>} */
export default {
  client: "@woocommerce/woocommerce-rest-api",
  auth: "basic",
  secrets: { key: "ck_madeup", secret: "cs_madeup" },
  connect: ({ at, secrets }) => {
    const woo = new WooCommerceRestApi({ url: at("https://shop.example.com"), consumerKey: secrets.key, consumerSecret: secrets.secret, version: "wc/v3" });
    woo.isHttps = true; // the recorder has no certificate
    return woo;
  },
  operations: {
    "hooks/topic": (woo, i) =>
      i.does === "register"
        ? woo.post("webhooks", { name: "Stepmill", topic: i.event, delivery_url: i.hook.url, secret: i.hook.secret, status: "active" })
        : woo.delete(`webhooks/${i.subscription.id}`, { force: true }).catch((error) => {
            if (error.response?.status !== 404) throw error; // it is gone
          }),
    create_order: (woo, i) =>
      woo.post(
        "orders",
        given({
          ...orderOf(i),
          line_items: i.items?.map(lineOf),
          coupon_lines: i.coupons?.map((code) => ({ code })),
          shipping_lines: i.shipping_method && [{ method_id: i.shipping_method, method_title: i.shipping_name, total: text(i.shipping_total) }],
          currency: i.currency,
        }),
      ),
    update_order: (woo, i) => woo.put(`orders/${i.order}`, given({ ...orderOf(i), transaction_id: i.transaction })),
    get_order: (woo, i) => woo.get(`orders/${i.order}`),
    list_orders: (woo, i) =>
      pages(woo, "orders", i, {
        status: i.statuses?.join(","),
        customer: i.customer,
        product: i.product,
        after: gmt(i.since),
        before: gmt(i.until),
        modified_after: gmt(i.changed_since),
        dates_are_gmt: true,
        search: i.search,
      }),
    delete_order: (woo, i) => woo.delete(`orders/${i.order}`, { force: i.forever ?? false }),
    add_order_note: (woo, i) => woo.post(`orders/${i.order}/notes`, { note: i.note, customer_note: i.to_customer ?? false }),
    list_order_notes: (woo, i) => woo.get(`orders/${i.order}/notes`),
    refund_order: (woo, i) => woo.post(`orders/${i.order}/refunds`, given({ amount: text(i.amount), reason: i.reason, api_refund: i.pay_back ?? false })),
    create_product: (woo, i) => woo.post("products", productOf(i)),
    update_product: (woo, i) => woo.put(`products/${i.product}`, productOf(i)),
    get_product: (woo, i) => woo.get(`products/${i.product}`),
    list_products: (woo, i) =>
      pages(woo, "products", i, {
        search: i.search,
        sku: i.sku,
        category: i.category,
        status: i.status,
        stock_status: i.stock,
        type: i.type,
        on_sale: i.on_sale,
        modified_after: gmt(i.changed_since),
        dates_are_gmt: i.changed_since && true,
      }),
    delete_product: (woo, i) => woo.delete(`products/${i.product}`, { force: i.forever ?? false }),
    create_customer: (woo, i) => woo.post("customers", customerOf(i)),
    update_customer: (woo, i) => woo.put(`customers/${i.customer}`, customerOf(i)),
    get_customer: (woo, i) => woo.get(`customers/${i.customer}`),
    list_customers: (woo, i) => pages(woo, "customers", i, { email: i.email, search: i.search, role: i.role }),
    create_coupon: (woo, i) =>
      woo.post(
        "coupons",
        given({
          code: i.code,
          discount_type: i.type,
          amount: text(i.amount),
          description: i.description,
          date_expires_gmt: gmt(i.expires),
          usage_limit: i.usage_limit,
          usage_limit_per_user: i.usage_limit_per_user,
          individual_use: i.individual_use,
          minimum_amount: text(i.minimum_amount),
          email_restrictions: i.emails,
          product_ids: i.products,
        }),
      ),
    list_product_choices: (woo, i) => pages(woo, "products", i, { search: i.search }),
    list_customer_choices: (woo, i) => pages(woo, "customers", i, { search: i.search, role: "all" }),
    list_categories: (woo, i) => pages(woo, "products/categories", i),
    list_tags: (woo, i) => pages(woo, "products/tags", i),
    list_order_statuses: (woo) => woo.get("reports/orders/totals"),
    list_payment_methods: (woo) => woo.get("payment_gateways"),
    list_shipping_methods: (woo) => woo.get("shipping_methods"),
    "triggers/new_order": poll("after", "date"),
    "triggers/order_changed": poll("modified_after", "modified"),
    "triggers/new_customer": (woo, { cursor }) => woo.get("customers", { orderby: "registered_date", order: "desc", per_page: 100, page: cursor?.page ?? 1 }),
  },
};
