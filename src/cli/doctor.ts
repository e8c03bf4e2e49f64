/** stub */
export async function runDoctor(_c: unknown, _o: unknown): Promise<number> { return 0; }
