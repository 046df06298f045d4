<<<<<<<< HEAD:web/dist/assets/invalid-link-DbR5dfKO.js
import{k as e}from"./index-BmQVFYU3.js";import{t}from"./button-DiZ2-zGe.js";import{r as n}from"./use-sign-in-DU8KdNgm.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
========
import{k as e}from"./index-JTn9d0FY.js";import{t}from"./button-BNAVJFzZ.js";import{r as n}from"./use-sign-in-DmNMTnsO.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
>>>>>>>> 7367c419 (web: choose the services of a shared connection):web/dist/assets/invalid-link-D3iJ0FzW.js
