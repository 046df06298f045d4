<<<<<<<< HEAD:web/dist/assets/invalid-link-Bf8uxTgD.js
import{k as e}from"./index-w_FVFGJx.js";import{t}from"./button-BNAVJFzZ.js";import{r as n}from"./use-sign-in-DhHthODp.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
========
import{k as e}from"./index-CrZg-lUW.js";import{t}from"./button-BNAVJFzZ.js";import{r as n}from"./use-sign-in-CwlBXdJf.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
>>>>>>>> 46139fff (web: rebuild with the new members of custom connections):web/dist/assets/invalid-link-DCLV14Vo.js
