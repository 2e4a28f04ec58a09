// Python sources are bundled as text (tools/bundle.mjs).
declare module "*.py" {
  const text: string;
  export default text;
}
