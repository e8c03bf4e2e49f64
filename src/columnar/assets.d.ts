/**
 * Files that the bundler embeds: importing one gives its path.
 * @module
 */
declare module "*.wasm" {
  const path: string;
  export default path;
}
