// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// A dollar coin for tests: ERC-20, and EIP-3009 with both forms of signature that USDC takes.
contract Dollar {
    string public name;
    string public constant symbol = "USDC";
    string public version;
    uint8 public constant decimals = 6;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant TRANSFER = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    constructor(string memory name_, string memory version_) {
        name = name_;
        version = version_;
    }

    /// Anyone may make money here.
    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        require(allowance[from][msg.sender] >= value, "ERC20: transfer amount exceeds allowance");
        allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    /// Moves from several owners at once, as wallets do that gather calls.
    function transferFromMany(address[] calldata from, address to, uint256[] calldata values) external {
        for (uint256 index = 0; index < from.length; index++) move(from[index], to, values[index]);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN, keccak256(bytes(name)), keccak256(bytes(version)), block.chainid, address(this))
        );
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        carryOut(Authorized(from, to, value, validAfter, validBefore, nonce), abi.encodePacked(r, s, v));
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external {
        carryOut(Authorized(from, to, value, validAfter, validBefore, nonce), signature);
    }

    struct Authorized {
        address from;
        address to;
        uint256 value;
        uint256 validAfter;
        uint256 validBefore;
        bytes32 nonce;
    }

    function carryOut(Authorized memory a, bytes memory signature) private {
        require(block.timestamp > a.validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < a.validBefore, "FiatTokenV2: authorization is expired");
        require(!authorizationState[a.from][a.nonce], "FiatTokenV2: authorization is used or canceled");
        bytes32 content =
            keccak256(abi.encode(TRANSFER, a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce));
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), content));
        require(isSigned(a.from, digest, signature), "FiatTokenV2: invalid signature");
        authorizationState[a.from][a.nonce] = true;
        emit AuthorizationUsed(a.from, a.nonce);
        move(a.from, a.to, a.value);
    }

    /// A key's signature, or, of an owner that is a contract, what that says of it (EIP-1271).
    function isSigned(address owner, bytes32 digest, bytes memory signature) private view returns (bool) {
        if (owner.code.length == 0) return Keys.signerOf(digest, signature) == owner;
        (bool ok, bytes memory result) =
            owner.staticcall(abi.encodeWithSignature("isValidSignature(bytes32,bytes)", digest, signature));
        return ok && result.length >= 32 && abi.decode(result, (bytes32)) == bytes32(bytes4(0x1626ba7e));
    }

    function move(address from, address to, uint256 value) private {
        require(balanceOf[from] >= value, "ERC20: transfer amount exceeds balance");
        balanceOf[from] -= value;
        unchecked {
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
    }
}

library Keys {
    /// Who signed, by a signature of 65 bytes.
    function signerOf(bytes32 digest, bytes memory signature) internal pure returns (address signer) {
        require(signature.length == 65, "ECRecover: invalid signature length");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        require(uint256(s) <= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0, "invalid s");
        signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "ECRecover: invalid signature");
    }
}

/// A wallet that is a contract: its signatures are its owner's, with 32 bytes before them that name the owner, over a
/// hash that binds them to this wallet. It can be told to burn gas before it answers.
contract Wallet {
    address public immutable owner;
    bool public burns;

    constructor(address owner_) {
        owner = owner_;
    }

    function burn(bool burns_) external {
        burns = burns_;
    }

    function digestOf(bytes32 hash) public view returns (bytes32) {
        return keccak256(abi.encode("Wallet", block.chainid, address(this), hash));
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (burns) for (uint256 round = 0; round < 100_000; round++) hash = keccak256(abi.encode(hash));
        if (signature.length != 97 || abi.decode(signature[0:32], (address)) != owner) return 0xffffffff;
        bool isOwner = Keys.signerOf(digestOf(hash), signature[32:]) == owner;
        return isOwner ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}

/// Makes wallets at places that are known before.
contract WalletFactory {
    function create(address owner) external returns (address) {
        address place = placeOf(owner);
        return place.code.length > 0 ? place : address(new Wallet{salt: bytes32(0)}(owner));
    }

    function placeOf(address owner) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(Wallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), code)))));
    }
}

/// A payee that is a contract: it takes coins, unless it is told not to.
contract Payee {
    bool public refuses;

    function refuse(bool refuses_) external {
        refuses = refuses_;
    }

    receive() external payable {
        require(!refuses, "refused");
    }
}
