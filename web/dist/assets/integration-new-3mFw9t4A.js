import{t as e}from"./useMutation-KDuxxQow.js";import{N as t}from"./removable-CRK0hW2h.js";import{t as n}from"./useNavigate-DjqncbBy.js";import{a as r,n as i,t as a}from"./jsx-runtime-Wy9s6hX0.js";import{t as o}from"./button-Dh2orSHq.js";import{t as s}from"./link-De0BfAf6.js";import{M as c}from"./index-aF4Tgsmn.js";import{c as l}from"./states-CQQ4yFec.js";import{n as u}from"./frame-BqxvXhgk.js";import{n as d,t as f}from"./manifest-editor-D2xaHZd3.js";import{a as p,r as m,t as h}from"./manifest-DdnOLRNL.js";var g=r(i(),1),_=a();function v(){let[r,i]=(0,g.useState)(m),a=(0,g.useRef)(!1),v=n(),y=t(),b=e({meta:{quiet:!0},mutationFn:e=>h(e),onSuccess:async({data:{id:e,name:t}})=>{a.current=!0,await p(y),l.done(`“${t}” was added. The builder offers its operations and triggers now.`),await v({to:`/settings/integrations/$id`,params:{id:e},replace:!0})}});return(0,_.jsxs)(u,{children:[(0,_.jsx)(c,{title:`Add an integration`,lead:(0,_.jsx)(s,{to:`/settings/integrations`,children:`Integrations`}),actions:(0,_.jsx)(o,{kind:`primary`,busy:b.isPending,disabled:r.trim()===``,onClick:()=>!b.isPending&&b.mutate(r),children:`Add integration`})}),(0,_.jsxs)(`p`,{className:`max-w-3xl text-muted`,children:[`A manifest describes a service: how people connect to it, what steps can do there and what starts runs. Change the example, or write one from an OpenAPI document with`,` `,(0,_.jsx)(`code`,{className:`font-mono text-12 text-text`,children:`stepmill integrations from-openapi`}),` and paste it here.`]}),(0,_.jsx)(f,{text:r,onChange:i,error:b.error,sent:b.variables}),(0,_.jsx)(d,{isDirty:()=>!a.current&&r!==`# What this integration is called. The id begins with x_ and cannot change later.
id: x_acme
name: Acme tickets
category: support
docs: https://docs.acme.example/api
base_url: https://api.acme.example/v1

# How people connect, and the only hosts that receive the credential.
connection:
  hosts: [api.acme.example]
  auth:
    - kind: bearer
      label: Access token
      help: Create one in your profile.
  test: {path: /me} # a request that fails with a wrong credential
  learn: {label: "\${{ test.email }}"} # the name of the account

# What steps can do.
operations:
  create_ticket:
    title: Create a ticket
    input:
      subject: {type: string, title: Subject, required: true}
      urgent: {type: boolean, title: Urgent}
    request:
      method: POST
      path: /tickets
      json:
        subject: \${{ input.subject }}
        urgent: \${{ input.urgent }}
`})]})}export{v as default};